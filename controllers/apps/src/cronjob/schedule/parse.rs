//! Reads schedules.

use jiff::tz::TimeZone;
use kcm_framework::config::GoDuration;

use super::error::ParseError;
use super::field::{DAYS_OF_MONTH, DAYS_OF_WEEK, HOURS, MINUTES, MONTHS};
use super::{Fields, Schedule, TimeZones};

impl Schedule {
    /// Reads a schedule of five fields or a descriptor, in the time zone that it names.
    ///
    /// One that names no time zone is in the local one.
    pub(in super::super) fn parse(text: &str, zones: &TimeZones) -> Result<Self, ParseError> {
        if text.is_empty() {
            return Err(ParseError::new("empty spec string".to_owned()));
        }
        let Some(named) = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ=")) else {
            return Self::parse_in(text, zones.local());
        };
        let Some((name, rest)) = named.split_once(' ') else {
            // Where the library panics, and upstream catches that.
            let panic = "invalid schedule format: runtime error: slice bounds out of range [:-1]";
            return Err(ParseError::new(panic.to_owned()));
        };
        let zone =
            zones.load(name).map_err(|error| ParseError::new(format!("provided bad location {name}: {error}")))?;
        Self::parse_in(rest.trim(), zone)
    }

    /// Reads a schedule without a time zone of its own.
    fn parse_in(text: &str, zone: TimeZone) -> Result<Self, ParseError> {
        if text.starts_with('@') {
            return Self::parse_descriptor(text, zone);
        }
        let fields: Vec<&str> = text.split_whitespace().collect();
        let &[minutes, hours, days_of_month, months, days_of_week] = &fields[..] else {
            let (count, fields) = (fields.len(), fields.join(" "));
            return Err(ParseError::new(format!("expected exactly 5 fields, found {count}: [{fields}]")));
        };
        Ok(Self::Fields(Fields {
            minutes: MINUTES.parse(minutes)?,
            hours: HOURS.parse(hours)?,
            days_of_month: DAYS_OF_MONTH.parse(days_of_month)?,
            months: MONTHS.parse(months)?,
            days_of_week: DAYS_OF_WEEK.parse(days_of_week)?,
            zone,
        }))
    }

    fn parse_descriptor(text: &str, zone: TimeZone) -> Result<Self, ParseError> {
        if let Some(every) = text.strip_prefix("@every ") {
            let period: GoDuration = every.parse().map_err(|_| {
                ParseError::new(format!("failed to parse duration {text}: time: invalid duration {every:?}"))
            })?;
            return Ok(Self::Every { seconds: (period.as_nanos() / 1_000_000_000).max(1) });
        }
        let hourly = Fields {
            minutes: MINUTES.lowest(),
            hours: HOURS.all(),
            days_of_month: DAYS_OF_MONTH.all(),
            months: MONTHS.all(),
            days_of_week: DAYS_OF_WEEK.all(),
            zone,
        };
        let daily = || Fields { hours: HOURS.lowest(), ..hourly.clone() };
        let monthly = || Fields { days_of_month: DAYS_OF_MONTH.lowest(), ..daily() };
        Ok(Self::Fields(match text {
            "@yearly" | "@annually" => Fields { months: MONTHS.lowest(), ..monthly() },
            "@monthly" => monthly(),
            "@weekly" => Fields { days_of_week: DAYS_OF_WEEK.lowest(), ..daily() },
            "@daily" | "@midnight" => daily(),
            "@hourly" => hourly,
            _ => return Err(ParseError::new(format!("unrecognized descriptor: {text}"))),
        }))
    }
}
