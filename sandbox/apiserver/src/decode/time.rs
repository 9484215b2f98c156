//! Times as typed fields hold them: checked, and written back in UTC.

use jiff::Timestamp;

use super::go;

/// How exact the times of a field are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Precision {
    Seconds,
    Microseconds,
}

impl Precision {
    const fn layout(self) -> &'static str {
        match self {
            Self::Seconds => "2006-01-02T15:04:05Z07:00",
            Self::Microseconds => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

/// Reads a time and writes it as the API server does.
///
/// # Errors
///
/// What Go's `time.Parse` says of it.
pub(super) fn normalize(text: &str, precision: Precision) -> Result<String, String> {
    let mut reader = Reader { text, rest: text, precision };
    reader.read()?;
    let parsed: Timestamp = text.replace(',', ".").parse().map_err(|_| reader.complaint(": day out of range"))?;
    Ok(match precision {
        Precision::Seconds => kcm_api::time::format_seconds(parsed),
        Precision::Microseconds => kcm_api::time::format_micros(parsed),
    })
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    precision: Precision,
}

impl Reader<'_> {
    fn complaint(&self, why: &str) -> String {
        format!("parsing time {}{why}", go::quote(self.text))
    }

    fn misfit(&self, element: &str) -> String {
        let why = format!(
            " as {}: cannot parse {} as {}",
            go::quote(self.precision.layout()),
            go::quote(self.rest),
            go::quote(element)
        );
        self.complaint(&why)
    }

    /// Checks the parts in order: the first that does not fit is told.
    fn read(&mut self) -> Result<(), String> {
        self.digits(4, "2006")?;
        self.symbol("-")?;
        self.within(1..=12, "01", "month")?;
        self.symbol("-")?;
        self.within(1..=31, "02", "day")?;
        self.symbol("T")?;
        self.within(0..=23, "15", "hour")?;
        self.symbol(":")?;
        self.within(0..=59, "04", "minute")?;
        self.symbol(":")?;
        self.within(0..=59, "05", "second")?;
        self.fraction()?;
        self.zone()?;
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.complaint(&format!(": extra text: {}", go::quote(self.rest))))
        }
    }

    fn digits(&mut self, count: usize, element: &str) -> Result<u32, String> {
        let digits = self.rest.get(..count).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let number = digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| self.misfit(element))?;
        self.rest = self.rest.get(count..).unwrap_or_default();
        Ok(number)
    }

    fn within(&mut self, range: std::ops::RangeInclusive<u32>, element: &str, name: &str) -> Result<(), String> {
        if range.contains(&self.digits(2, element)?) {
            Ok(())
        } else {
            Err(self.complaint(&format!(": {name} out of range")))
        }
    }

    fn symbol(&mut self, symbol: &str) -> Result<(), String> {
        self.rest = self.rest.strip_prefix(symbol).ok_or_else(|| self.misfit(symbol))?;
        Ok(())
    }

    fn fraction(&mut self) -> Result<(), String> {
        match self.precision {
            Precision::Microseconds => {
                let digits = self.rest.strip_prefix('.').and_then(|rest| rest.get(..6));
                if digits.is_none_or(|digits| !digits.bytes().all(|byte| byte.is_ascii_digit())) {
                    return Err(self.misfit(".000000"));
                }
                self.rest = self.rest.get(7..).unwrap_or_default();
            }
            // Go takes a fraction that the layout does not have.
            Precision::Seconds => {
                if let Some(rest) = self.rest.strip_prefix(['.', ','])
                    && rest.starts_with(|c: char| c.is_ascii_digit())
                {
                    self.rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
                }
            }
        }
        Ok(())
    }

    fn zone(&mut self) -> Result<(), String> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(());
        }
        let is_offset = self.rest.get(..6).is_some_and(|offset| {
            let bytes = offset.as_bytes();
            matches!(bytes.first(), Some(b'+' | b'-'))
                && bytes.get(3) == Some(&b':')
                && [1, 2, 4, 5].iter().all(|at| bytes.get(*at).is_some_and(u8::is_ascii_digit))
        });
        if !is_offset {
            return Err(self.misfit("Z07:00"));
        }
        self.rest = self.rest.get(6..).unwrap_or_default();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc_and_as_exactly_as_their_field_is() {
        for (text, precision, expected) in [
            ("2020-01-01T01:00:00+01:00", Precision::Seconds, "2020-01-01T00:00:00Z"),
            ("2020-01-01T01:00:00.5+01:00", Precision::Seconds, "2020-01-01T00:00:00Z"),
            ("2020-01-01T01:00:00.500000+01:00", Precision::Microseconds, "2020-01-01T00:00:00.500000Z"),
        ] {
            assert_eq!(normalize(text, precision).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn the_first_part_that_does_not_fit_is_told_in_the_words_of_go() {
        let seconds = r#" as "2006-01-02T15:04:05Z07:00": cannot parse "#;
        let micros = r#" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "#;
        for (text, precision, expected) in [
            ("x", Precision::Seconds, format!(r#"{seconds}"x" as "2006""#)),
            ("", Precision::Seconds, format!(r#"{seconds}"" as "2006""#)),
            ("2020-01-01", Precision::Seconds, format!(r#"{seconds}"" as "T""#)),
            ("2020-01-01T00:00:00", Precision::Seconds, format!(r#"{seconds}"" as "Z07:00""#)),
            ("2020-13-01T00:00:00Z", Precision::Seconds, ": month out of range".to_owned()),
            ("2020-02-31T00:00:00Z", Precision::Seconds, ": day out of range".to_owned()),
            ("2020-01-01T00:00:00Zx", Precision::Seconds, r#": extra text: "x""#.to_owned()),
            ("2020", Precision::Microseconds, format!(r#"{micros}"" as "-""#)),
            ("2020-01-01T00:00:00Z", Precision::Microseconds, format!(r#"{micros}"Z" as ".000000""#)),
            ("2020-01-01T01:00:00.5+01:00", Precision::Microseconds, format!(r#"{micros}".5+01:00" as ".000000""#)),
        ] {
            assert_eq!(normalize(text, precision), Err(format!("parsing time {}{expected}", go::quote(text))));
        }
    }
}
