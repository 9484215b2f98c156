//! The fields of a schedule.

use super::error::ParseError;

/// The bounds of a field, and the names that stand for numbers.
pub(super) struct Bounds {
    first: u64,
    last: u64,
    names: &'static [&'static str],
}

pub(super) const MINUTES: Bounds = Bounds { first: 0, last: 59, names: &[] };
pub(super) const HOURS: Bounds = Bounds { first: 0, last: 23, names: &[] };
pub(super) const DAYS_OF_MONTH: Bounds = Bounds { first: 1, last: 31, names: &[] };
pub(super) const MONTHS: Bounds = Bounds {
    first: 1,
    last: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
pub(super) const DAYS_OF_WEEK: Bounds =
    Bounds { first: 0, last: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

/// Set where the field says any number: then only the other of the two fields of days decides.
pub(super) const ANY: u64 = 1 << 63;

impl Bounds {
    /// Every number.
    pub(super) fn all(&self) -> u64 {
        numbers(self.first, self.last, 1) | ANY
    }

    /// The first number alone.
    pub(super) const fn lowest(&self) -> u64 {
        1 << self.first
    }

    /// Reads a field, as `1-5/2,7`. Of nothing but commas no number matches.
    pub(super) fn parse(&self, field: &str) -> Result<u64, ParseError> {
        let ranges = field.split(',').filter(|range| !range.is_empty());
        ranges.map(|range| self.parse_range(range)).try_fold(0, |all, range| Ok(all | range?))
    }

    fn parse_range(&self, range: &str) -> Result<u64, ParseError> {
        let mut steps = range.split('/');
        let (bounds, step, rest) = (steps.next().unwrap_or_default(), steps.next(), steps.next());
        let mut ends = bounds.split('-');
        let (low, high, more) = (ends.next().unwrap_or_default(), ends.next(), ends.next());
        // What follows a star and a hyphen is not read.
        let is_any = matches!(low, "*" | "?");
        let (first, mut last) = if is_any {
            (self.first, self.last)
        } else {
            let first = self.number_or_name(low)?;
            match (high, more) {
                (None, _) => (first, first),
                (Some(high), None) => (first, self.number_or_name(high)?),
                (Some(_), Some(_)) => return Err(ParseError::new(format!("too many hyphens: {range}"))),
            }
        };
        if rest.is_some() {
            return Err(ParseError::new(format!("too many slashes: {range}")));
        }
        let step = match step {
            None => 1,
            Some(step) => {
                let step = number(step)?;
                // `N/STEP` goes on to the end.
                if high.is_none() {
                    last = self.last;
                }
                step
            }
        };
        if first < self.first {
            return Err(ParseError::new(format!(
                "beginning of range ({first}) below minimum ({}): {range}",
                self.first
            )));
        }
        if last > self.last {
            return Err(ParseError::new(format!("end of range ({last}) above maximum ({}): {range}", self.last)));
        }
        if first > last {
            return Err(ParseError::new(format!("beginning of range ({first}) beyond end of range ({last}): {range}")));
        }
        if step == 0 {
            return Err(ParseError::new(format!("step of range should be a positive number: {range}")));
        }
        let any = if is_any && step == 1 { ANY } else { 0 };
        Ok(numbers(first, last, step) | any)
    }

    fn number_or_name(&self, text: &str) -> Result<u64, ParseError> {
        match (self.first..).zip(self.names).find(|(_, name)| name.eq_ignore_ascii_case(text)) {
            Some((number, _)) => Ok(number),
            None => number(text),
        }
    }
}

/// A number; one that is too large for any field stays too large.
fn number(text: &str) -> Result<u64, ParseError> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    let parsed: Result<i64, _> = text.parse();
    match parsed {
        Ok(number) if number < 0 => Err(ParseError::new(format!("negative number ({number}) not allowed: {text}"))),
        Ok(number) => Ok(number.unsigned_abs()),
        Err(error) => {
            let is_large = matches!(error.kind(), PosOverflow | NegOverflow);
            let problem = if is_large { "value out of range" } else { "invalid syntax" };
            Err(ParseError::new(format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: {problem}")))
        }
    }
}

/// The set of every `step`th number from `first` to `last`.
fn numbers(first: u64, last: u64, step: u64) -> u64 {
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    (first..=last).step_by(step).fold(0, |all, number| all | 1 << number)
}
