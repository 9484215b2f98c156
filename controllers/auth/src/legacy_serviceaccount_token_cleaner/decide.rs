//! The rules of the cleaner, by date.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use kcm_framework::api::{Meta, Uid};

/// The label with the day on which a token was last used, which API servers keep.
pub(super) const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";

/// The label with the day since which a token is invalid.
pub(super) const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// The times that a round compares with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cutoff {
    /// Tokens created from here on are kept.
    created: Timestamp,
    /// Tokens used, or labelled, on this day or a later one are kept.
    used: Date,
    pub(super) today: Date,
}

impl Cutoff {
    /// Returns the times of a round; `None` if the use of tokens has not been tracked for long enough.
    ///
    /// Tracking may have begun at any time of the day `since`, so the period begins on the day after.
    pub(super) fn of(now: Timestamp, since: Date, period: SignedDuration) -> Option<Self> {
        let day = |time: Timestamp| time.to_zoned(TimeZone::UTC).date();
        let tracked = since.checked_add(1.day()).ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp();
        let earliest = tracked.checked_add(period).ok()?;
        if now < earliest {
            return None;
        }
        let created = now.checked_sub(period).ok()?;
        Some(Self { created, used: day(created), today: day(now) })
    }
}

/// Parses a day of a label or of the config map: `2006-01-02`.
pub(super) fn parse_day(text: &str) -> Option<Date> {
    let is_digit = |(at, byte): (usize, u8)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() };
    let is_day = text.len() == 10 && text.bytes().enumerate().all(is_digit);
    if is_day { text.parse().ok() } else { None }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// It was created within the period.
    Young,
    Terminating,
    /// It was used within the period.
    Used,
    /// The day of its last use cannot be read.
    UnreadableDay,
    /// The account that it names does not exist, or does not reference it: a person may have created it.
    NotGenerated,
    /// A pod of its namespace names it.
    Mounted,
    /// It became invalid within the period.
    JustInvalid,
}

/// Checks that a secret looks unused by its own metadata.
pub(super) fn check_use(secret: &Meta, cutoff: &Cutoff) -> Result<(), Kept> {
    if secret.creation_timestamp.is_none_or(|created| created >= cutoff.created) {
        return Err(Kept::Young);
    }
    if secret.is_terminating() {
        return Err(Kept::Terminating);
    }
    match secret.labels.get(LAST_USED).map(parse_day) {
        Some(None) => Err(Kept::UnreadableDay),
        Some(Some(day)) if day >= cutoff.used => Err(Kept::Used),
        // Without the label it has not been used since the tracking began.
        Some(Some(_)) | None => Ok(()),
    }
}

/// Checks that a secret is auto-generated. `account` is the uid of the account of the name that the secret names, and
/// whether that account references the secret.
pub(super) fn check_account(named: &Uid, account: Option<(&Uid, bool)>) -> Result<(), Kept> {
    let is_generated = account.is_some_and(|(uid, references)| references && (named.is_unset() || named == uid));
    if is_generated { Ok(()) } else { Err(Kept::NotGenerated) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Invalidate,
    Delete,
}

/// Plans for an unused secret by its label. A label that cannot be read is written again.
pub(super) fn next_step(secret: &Meta, cutoff: &Cutoff) -> Result<Step, Kept> {
    match secret.labels.get(INVALID_SINCE).and_then(parse_day) {
        None => Ok(Step::Invalidate),
        Some(day) if day >= cutoff.used => Err(Kept::JustInvalid),
        Some(_) => Ok(Step::Delete),
    }
}
