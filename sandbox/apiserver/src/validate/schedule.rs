//! Schedules of cron jobs.
//!
//! # Upstream
//! `robfig/cron/v3`, whose messages errors carry

/// The bounds of a field, and the names that stand for numbers.
struct Field {
    first: u32,
    last: u32,
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const FIELDS: [Field; 5] = [
    Field { first: 0, last: 59, names: &[] },
    Field { first: 0, last: 23, names: &[] },
    Field { first: 1, last: 31, names: &[] },
    Field { first: 1, last: 12, names: &MONTHS },
    Field { first: 0, last: 6, names: &DAYS },
];
const DESCRIPTORS: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// Returns the problem of an invalid schedule.
pub(super) fn check(schedule: &str) -> Result<(), String> {
    if let Some(every) = schedule.strip_prefix("@every ") {
        return if is_duration(every) {
            Ok(())
        } else {
            Err(format!("failed to parse duration {schedule}: time: invalid duration {every:?}"))
        };
    }
    if schedule.starts_with('@') {
        return if DESCRIPTORS.contains(&schedule) {
            Ok(())
        } else {
            Err(format!("unrecognized descriptor: {schedule}"))
        };
    }
    let parts: Vec<&str> = schedule.split_whitespace().collect();
    if parts.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", parts.len(), parts.join(" ")));
    }
    parts.iter().zip(&FIELDS).try_for_each(|(part, field)| {
        part.split(',').filter(|range| !range.is_empty()).try_for_each(|range| check_range(range, field))
    })
}

fn check_range(range: &str, field: &Field) -> Result<(), String> {
    let mut steps = range.split('/');
    let bounds = steps.next().unwrap_or_default();
    let step = steps.next();
    if steps.next().is_some() {
        return Err(format!("too many slashes: {range}"));
    }
    let (first, mut last) = if matches!(bounds, "*" | "?") {
        (field.first, field.last)
    } else {
        let mut ends = bounds.split('-');
        let first = number(ends.next().unwrap_or_default(), field)?;
        let last = ends.next().map_or(Ok(first), |end| number(end, field))?;
        if ends.next().is_some() {
            return Err(format!("too many hyphens: {range}"));
        }
        (first, last)
    };
    let step = step.map_or(Ok(1), |step| number(step, &Field { names: &[], ..*field }))?;
    if step != 1 && first == last && !bounds.contains('-') {
        last = field.last;
    }
    if first < field.first {
        return Err(format!("beginning of range ({first}) below minimum ({}): {range}", field.first));
    }
    if last > field.last {
        return Err(format!("end of range ({last}) above maximum ({}): {range}", field.last));
    }
    if first > last {
        return Err(format!("beginning of range ({first}) beyond end of range ({last}): {range}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {range}"));
    }
    Ok(())
}

fn number(text: &str, field: &Field) -> Result<u32, String> {
    if let Some(at) = field.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
        return Ok(u32::try_from(at).unwrap_or(0) + field.first);
    }
    let parsed: Result<i64, _> = text.parse();
    match parsed {
        Ok(number) if number < 0 => Err(format!("negative number ({number}) not allowed: {text}")),
        Ok(number) => Ok(u32::try_from(number).unwrap_or(u32::MAX)),
        Err(_) => Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax")),
    }
}

/// `1h30m`, as Go reads durations.
fn is_duration(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.trim_start_matches(|character: char| character.is_ascii_digit() || character == '.');
        if digits.len() == rest.len() {
            return false;
        }
        let unit = ["ns", "us", "µs", "ms", "s", "m", "h"]
            .into_iter()
            .filter(|unit| digits.starts_with(*unit))
            .max_by_key(|unit| unit.len());
        let Some(left) = unit.and_then(|unit| digits.strip_prefix(unit)) else { return false };
        rest = left;
    }
    !text.is_empty()
}

/// The areas of the time zone database; what is within an area is not looked up.
const AREAS: [&str; 11] = [
    "Africa",
    "America",
    "Antarctica",
    "Arctic",
    "Asia",
    "Atlantic",
    "Australia",
    "Etc",
    "Europe",
    "Indian",
    "Pacific",
];

/// Returns `true` if a name can name a time zone.
pub(super) fn is_time_zone(name: &str) -> bool {
    let is_plain = name.split('/').all(|part| {
        part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-+".contains(&byte))
            && part.starts_with(|first: char| first.is_ascii_uppercase())
    });
    match name.split_once('/') {
        Some((area, _)) => is_plain && AREAS.contains(&area),
        None => {
            is_plain
                && (matches!(name, "Local" | "Japan" | "Israel") || name.bytes().all(|byte| !byte.is_ascii_lowercase()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_refused_with_the_texts_of_upstream() {
        for (schedule, expected) in [
            ("*/5 * * * *", Ok(())),
            ("0 0 * JAN MON", Ok(())),
            ("@every 1h30m", Ok(())),
            ("1-5/2,7 * * * *", Ok(())),
            ("5/15 * * * *", Ok(())),
            ("1/2/3 * * * *", Err("too many slashes: 1/2/3")),
            ("1-2-3 * * * *", Err("too many hyphens: 1-2-3")),
            ("* * 32 * *", Err("end of range (32) above maximum (31): 32")),
            ("@every soon", Err("failed to parse duration @every soon: time: invalid duration \"soon\"")),
        ] {
            assert_eq!(check(schedule), expected.map_err(str::to_owned), "{schedule}");
        }
    }
}
