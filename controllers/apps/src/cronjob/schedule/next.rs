//! The next start of a schedule of fields.
//!
//! Around a change of the offset of the time zone many answers could be right. These are those of the Go library, step by
//! step: a local time that the change leaves out is taken an hour earlier or later, as `time.Date` takes it.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;
use jiff::{Span, Timestamp};

use super::Fields;
use super::field::ANY;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;

/// After how many years without a start the search ends.
const YEARS: i16 = 5;

/// The seconds since 1970, without the part of a second.
pub(super) fn whole_seconds(time: Timestamp) -> i64 {
    time.as_second() - i64::from(time.subsec_nanosecond() < 0)
}

/// Whether the number is in the set.
fn has(set: u64, number: i8) -> bool {
    u32::try_from(number).is_ok_and(|number| set & (1 << number) != 0)
}

/// A time and what clocks in the zone show then.
#[derive(Clone, Copy)]
struct Moment {
    seconds: i64,
    local: DateTime,
}

impl Fields {
    /// The first start after a time; absent where there is none within five years.
    pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let is_empty = |set: &u64| set & !ANY == 0;
        if [self.minutes, self.hours, self.days_of_month, self.months, self.days_of_week].iter().any(is_empty) {
            return None;
        }
        let mut at = self.moment(whole_seconds(after) + 1)?;
        let last_year = at.local.year().saturating_add(YEARS);
        // Whether the smaller units are zero already.
        let mut is_cut = false;
        // A unit that wraps around begins the search again: the larger ones may not match any more.
        while at.local.year() <= last_year {
            let found = self.next_month(&mut at, &mut is_cut)?
                && self.next_day(&mut at, &mut is_cut)?
                && self.next_hour(&mut at, &mut is_cut)?
                && self.next_minute(&mut at, &mut is_cut)?
                && self.next_second(&mut at, &mut is_cut)?;
            if found {
                return Timestamp::from_second(at.seconds).ok();
            }
        }
        None
    }

    /// Goes on to a month that matches; false where the year ended.
    fn next_month(&self, at: &mut Moment, is_cut: &mut bool) -> Option<bool> {
        while !has(self.months, at.local.month()) {
            if !std::mem::replace(is_cut, true) {
                *at = self.at(at.local.date().first_of_month(), Time::midnight())?;
            }
            *at = self.at(next_month(at.local.date())?, at.local.time())?;
            if at.local.month() == 1 {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Goes on to a day that matches; false where the month ended.
    fn next_day(&self, at: &mut Moment, is_cut: &mut bool) -> Option<bool> {
        while !self.matches_day(at.local.date()) {
            if !std::mem::replace(is_cut, true) {
                *at = self.at(at.local.date(), Time::midnight())?;
            }
            *at = self.at(at.local.date().tomorrow().ok()?, at.local.time())?;
            // Midnight may be left out by a change.
            let hour = i64::from(at.local.hour());
            if hour > 12 {
                *at = self.moment(at.seconds + (24 - hour) * HOUR)?;
            } else if hour != 0 {
                *at = self.moment(at.seconds - hour * HOUR)?;
            }
            if at.local.day() == 1 {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Goes on to an hour that matches; false where the day ended.
    fn next_hour(&self, at: &mut Moment, is_cut: &mut bool) -> Option<bool> {
        while !has(self.hours, at.local.hour()) {
            if !std::mem::replace(is_cut, true) {
                let hour = Time::new(at.local.hour(), 0, 0, 0).ok()?;
                *at = self.at(at.local.date(), hour)?;
            }
            *at = self.moment(at.seconds + HOUR)?;
            if at.local.hour() == 0 {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Goes on to a minute that matches; false where the hour ended.
    fn next_minute(&self, at: &mut Moment, is_cut: &mut bool) -> Option<bool> {
        while !has(self.minutes, at.local.minute()) {
            if !std::mem::replace(is_cut, true) {
                *at = self.moment(at.seconds - at.seconds.rem_euclid(MINUTE))?;
            }
            *at = self.moment(at.seconds + MINUTE)?;
            if at.local.minute() == 0 {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Goes on to the second zero; false where the minute ended, which is always so on the way.
    fn next_second(&self, at: &mut Moment, is_cut: &mut bool) -> Option<bool> {
        if at.local.second() == 0 {
            return Some(true);
        }
        *is_cut = true;
        *at = self.moment(at.seconds + MINUTE - i64::from(at.local.second()))?;
        Some(false)
    }

    /// Whether the day matches: by both fields where one says any day, else by one of the two.
    fn matches_day(&self, date: Date) -> bool {
        let by_month = has(self.days_of_month, date.day());
        let by_week = has(self.days_of_week, date.weekday().to_sunday_zero_offset());
        if (self.days_of_month | self.days_of_week) & ANY != 0 { by_month && by_week } else { by_month || by_week }
    }

    fn offset(&self, seconds: i64) -> Option<i64> {
        let time = Timestamp::from_second(seconds).ok()?;
        Some(self.zone.to_offset(time).seconds().into())
    }

    fn moment(&self, seconds: i64) -> Option<Moment> {
        let time = Timestamp::from_second(seconds).ok()?;
        Some(Moment { seconds, local: self.zone.to_datetime(time) })
    }

    /// The moment of a local time, with the offset of the zone that the local time, taken as UTC, guesses.
    fn at(&self, date: Date, time: Time) -> Option<Moment> {
        let local = Offset::UTC.to_timestamp(date.to_datetime(time)).ok()?.as_second();
        let guessed = self.offset(local)?;
        self.moment(local - self.offset(local - guessed)?)
    }
}

/// The same day of the next month; one that this month lacks is in the month after it.
fn next_month(date: Date) -> Option<Date> {
    let first = date.first_of_month().checked_add(Span::new().months(1)).ok()?;
    first.checked_add(Span::new().days(date.day() - 1)).ok()
}
