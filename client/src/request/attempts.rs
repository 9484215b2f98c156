//! The attempts of one request: when the next is sent, and what they amount to.

use std::time::Duration;

use kcm_api::{Resource, ResourceVersion};
use tokio::time::Instant;

use super::answer::{Effect, Meaning, Repeat, RequestKind, ResponseKind, meaning, repeats_safely};
use super::write_outcome::WriteOutcome;
use super::write_record::{SentWrite, Unversioned, WriteRecord};

/// Number of times that a request is repeated because the API server asked for it.
///
/// # Upstream
/// The default of client-go.
const MAX_REPEATS: usize = 10;

/// The delays before the repetitions of a write whose connection broke. Most reconnect at once.
const RECONNECTS: [Duration; 3] = [Duration::ZERO, Duration::from_millis(100), Duration::from_millis(400)];

/// The attempts of one request so far.
#[derive(Debug)]
pub struct Attempts {
    kind: RequestKind,
    may_reconnect: bool,
    reconnects: usize,
    repeats: usize,
    /// The deadline of the first attempt, before which each repetition begins.
    until: Option<Instant>,
    in_progress: Option<Instant>,
    /// Whether a completed attempt may have taken effect.
    may_have_landed: bool,
    /// Whether an attempt before the last may have taken effect.
    was_lost: bool,
    open_until: Option<Instant>,
    recording: Recording,
}

/// The recording of a write.
#[derive(Debug)]
enum Recording {
    /// It is not recorded, as a read.
    Off,
    /// It is recorded when it is sent.
    In(WriteRecord, Resource),
    Sent(SentWrite),
}

impl Attempts {
    /// No attempts, of a request that is not repeated when a connection breaks.
    pub(crate) const fn of(kind: RequestKind) -> Self {
        Self {
            kind,
            may_reconnect: false,
            reconnects: 0,
            repeats: 0,
            until: None,
            in_progress: None,
            may_have_landed: false,
            was_lost: false,
            open_until: None,
            recording: Recording::Off,
        }
    }

    /// Records the write in `record`, from its first attempt until this value is dropped.
    pub(crate) fn record_in(&mut self, record: &WriteRecord, resource: &Resource) {
        if let Recording::Off = self.recording {
            self.recording = Recording::In(record.clone(), resource.clone());
        }
    }

    /// Records that the write took effect under that version; if the version is unset, as `otherwise`.
    pub(crate) fn landed(&mut self, version: &ResourceVersion, otherwise: Unversioned) {
        match &mut self.recording {
            Recording::Sent(write) => write.landed(version, otherwise),
            Recording::Off | Recording::In(..) => {}
        }
    }

    /// Repeats the request also when a connection breaks, if that is safe.
    #[must_use]
    pub const fn reconnecting(mut self) -> Self {
        self.may_reconnect = true;
        self
    }

    /// Returns `true` if an attempt before the last may have taken effect.
    #[must_use]
    pub const fn was_lost(&self) -> bool {
        self.was_lost
    }

    /// Returns `true` if a repetition is safe and would show the outcome of the attempts so far.
    pub(crate) const fn may_repeat_after_outage(&self) -> bool {
        self.may_reconnect && self.may_have_landed && repeats_safely(self.kind)
    }

    /// Before when a repetition must begin: the deadline of the first attempt.
    pub(crate) const fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Time until which the request may take effect, if its outcome is unknown.
    #[must_use]
    pub const fn outcome(&self) -> WriteOutcome {
        match (self.in_progress, self.open_until) {
            (Some(_), _) => WriteOutcome::Unknown { deadline: None },
            (None, Some(deadline)) => WriteOutcome::Unknown { deadline: Some(deadline) },
            (None, None) => WriteOutcome::Known,
        }
    }

    /// Records that the outcome of all attempts is known from elsewhere.
    pub fn settle(&mut self) {
        self.open_until = None;
        self.landed(&ResourceVersion::default(), Unversioned::Other);
    }

    /// An attempt is sent, which can take effect until `deadline`; returns whether it is a repetition.
    pub(crate) fn begin(&mut self, deadline: Instant) -> bool {
        let is_repetition = self.until.is_some();
        self.until.get_or_insert(deadline);
        self.was_lost = self.may_have_landed;
        self.in_progress = Some(deadline);
        if let Recording::In(record, resource) = &self.recording {
            self.recording = Recording::Sent(record.sent(resource));
        }
        is_repetition
    }

    /// The answer to the attempt came at `now`; returns when the next is sent, if one is.
    pub(crate) fn answered(&mut self, answer: ResponseKind, now: Instant) -> Option<Instant> {
        let Meaning { effect, repeat } = meaning(self.kind, answer, self.may_have_landed);
        let deadline = self.in_progress.take().unwrap_or(now);
        // Such an earlier attempt is not undone or excluded by what happens to a later one.
        let stands_alone = matches!(self.kind, RequestKind::CreateUnnamed | RequestKind::Cumulative);
        match effect {
            Effect::None => {}
            Effect::Landed if stands_alone => {}
            Effect::Landed => self.open_until = None,
            Effect::Settled if stands_alone || !self.may_have_landed => {}
            // A live list shows now which of the attempts took effect.
            Effect::Settled => self.open_until = Some(now),
            Effect::Unread => self.open_until = self.open_until.max(Some(now)),
            Effect::Open => {
                self.may_have_landed = true;
                self.open_until = self.open_until.max(Some(deadline));
            }
            Effect::Ended => {
                self.may_have_landed = true;
                // A live list shows now whether it did.
                self.open_until = self.open_until.max(Some(now));
            }
            Effect::Harmless => self.may_have_landed = true,
        }
        let next = match repeat {
            Repeat::Never => None,
            Repeat::Reconnect if !self.may_reconnect => None,
            Repeat::Reconnect => {
                let pause = RECONNECTS.get(self.reconnects).copied();
                self.reconnects += 1;
                pause
            }
            Repeat::After(pause) => {
                self.repeats += 1;
                (self.repeats <= MAX_REPEATS).then_some(pause)
            }
        };
        next.and_then(|pause| now.checked_add(pause)).filter(|at| self.until.is_none_or(|until| *at < until))
    }
}

impl Drop for Attempts {
    fn drop(&mut self) {
        if let Recording::Sent(write) = std::mem::replace(&mut self.recording, Recording::Off) {
            let outcome = match self.outcome() {
                // Nothing happens twice, but nobody knows under which version it happened.
                WriteOutcome::Known if self.may_have_landed && !write.has_landed() => {
                    WriteOutcome::Unknown { deadline: self.until }
                }
                outcome @ (WriteOutcome::Known | WriteOutcome::Unknown { .. }) => outcome,
            };
            write.ended(outcome, self.in_progress.unwrap_or_else(Instant::now));
        }
    }
}
