//! The text of perturbations, as files keep it.

use std::str::FromStr;
use std::time::Duration;

use super::{Access, Anchor, By, Failure, Moment, Order, Perturbation, Place, Relist, Settings, Until, What};

/// A line that is not a perturbation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot parse the perturbation {line:?}: {why}")]
pub struct ParseError {
    /// The line that cannot be parsed.
    pub line: String,
    /// The part that is wrong, and what is expected there.
    pub why: String,
}

impl FromStr for Perturbation {
    type Err = ParseError;

    fn from_str(line: &str) -> Result<Self, ParseError> {
        let parsed = || {
            let (at, what) = line.split_once(": ").ok_or("no colon ends the anchor")?;
            Ok(Self { at: anchor(at)?, what: deviation(what)? })
        };
        parsed().map_err(|why: String| ParseError { line: line.to_owned(), why })
    }
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number"))
}

fn duration(text: &str) -> Result<Duration, String> {
    let millis = text.strip_suffix("ms").and_then(|digits| digits.parse().ok());
    millis.map(Duration::from_millis).ok_or_else(|| format!("{text:?} is not a number of milliseconds, such as 500ms"))
}

fn anchor(text: &str) -> Result<Anchor, String> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let mut process = 1;
    if let ["process", of, ..] = words[..] {
        process = number(of)?;
        words.drain(..2);
    }
    let (place, count) = match words[..] {
        ["start", count] => (Place::Start, count),
        ["kubelet", count] => (Place::Kubelet, count),
        ["cache", cache, "delivery", count] => (Place::Delivery { cache: cache.to_owned() }, count),
        [of, key, "taken", count] => (Place::Taken { of: of.to_owned(), key: key.to_owned() }, count),
        [of, key, "write", count] => (request(of, key, Access::Write), count),
        [of, key, "read", count] => (request(of, key, Access::Read), count),
        _ => return Err(format!("{text:?} is not an anchor")),
    };
    Ok(Anchor { process, place, number: number(count)? })
}

fn request(of: &str, key: &str, access: Access) -> Place {
    Place::Request { of: of.to_owned(), key: key.to_owned(), access }
}

fn moment(text: &str) -> Result<Moment, String> {
    match text {
        "before" => Ok(Moment::Before),
        "after" => Ok(Moment::After),
        _ => Err(format!("{text:?} is neither before nor after")),
    }
}

fn until(words: &[&str]) -> Result<Until, String> {
    match *words {
        [count, "writes"] => Ok(Until::Writes(number(count)?)),
        [count, "events"] => Ok(Until::Events(number(count)?)),
        ["rest"] => Ok(Until::Rest),
        [time] => Ok(Until::After(duration(time)?)),
        _ => Err(format!("{:?} is not the end of a hold", words.join(" "))),
    }
}

fn deviation(text: &str) -> Result<What, String> {
    let words: Vec<&str> = text.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    Ok(match words[..] {
        ["kill", "in", "flight", "until", ..] => What::KillInFlight(until(&words[4..])?),
        ["kill", at, ref how @ ..] => {
            let (how, settings) = match how {
                [how @ .., "other", "settings"] => (how, Settings::Other),
                _ => (how, Settings::Same),
            };
            let restart = match *how {
                [] => Duration::ZERO,
                ["restart", "after", time] => duration(time)?,
                _ => return Err(format!("{text:?} is not a deviation")),
            };
            What::Kill { moment: moment(at)?, restart, settings }
        }
        ["pause", time] => What::Pause(duration(time)?),
        ["outage", time] => What::Outage(duration(time)?),
        ["clock", seconds] => {
            What::Clock(seconds.parse().map_err(|_| format!("{seconds:?} is not a number of seconds"))?)
        }
        ["mutate"] => What::Mutate,
        ["pod", "fails"] => What::Pod(Failure::Fails),
        ["pod", "evicted"] => What::Pod(Failure::IsEvicted),
        ["pod", "unready"] => What::Pod(Failure::IsUnready),
        ["order", by, seed, "for", steps, "steps"] => {
            let by = match by {
                "pos" => By::Step,
                "pct" => By::Actor,
                _ => return Err(format!("{by:?} is neither pos nor pct")),
            };
            What::Order(Order { by, seed: number(seed)?, steps: number(steps)? })
        }
        ["lose", "response"] => What::LoseResponse,
        ["hold", "request", "until", ..] => What::HoldRequest(until(&words[3..])?),
        ["hold", "response", "until", ..] => What::HoldResponse(until(&words[3..])?),
        ["hold", "until", ..] => What::Hold(until(&words[2..])?),
        ["relist", "clean"] => What::Relist(Relist::Clean),
        ["relist", "bookmark"] => What::Relist(Relist::Bookmark),
        ["relist", "broken"] => What::Relist(Relist::Broken),
        ["relist", "compacted"] => What::Relist(Relist::Compacted),
        ["relist", "expired"] => What::Relist(Relist::Expired),
        ["fail", at, code] => {
            let code = code.parse().map_err(|_| format!("{code:?} is not a status code"))?;
            What::Fail { moment: moment(at)?, code }
        }
        ["act", name] => What::Act(name.to_owned()),
        _ => return Err(format!("{text:?} is not a deviation")),
    })
}

#[cfg(test)]
mod tests {
    use super::super::Schedule;

    #[test]
    fn the_text_of_every_perturbation_parses_to_the_same() {
        let text = "\
replicaset default/web write 2: kill after
process 2 replicaset default/web write 2: kill before, restart after 500ms
replicaset default/web-* read 1: lose response
replicaset default/web write 1: hold request until 2 writes
replicaset default/web write 1: hold response until 3 events
cache pods delivery 3: hold until rest
cache pods delivery 3: hold until 4 events
cache pods delivery 3: hold until 1500ms
cache pods delivery 2: relist clean
cache pods delivery 2: relist bookmark
cache pods delivery 2: relist broken
cache pods delivery 2: relist compacted
cache pods delivery 2: relist expired
replicaset default/web write 3: fail before 503
replicaset default/web write 3: fail after 500
deployment default/web taken 4: act recreate
replicaset default/web write 2: kill after, other settings
replicaset default/web write 2: kill after, restart after 60000ms, other settings
replicaset default/web write 2: kill in flight until 1 writes
replicaset default/web taken 2: pause 60000ms
replicaset default/web taken 2: outage 30000ms
replicaset default/web taken 2: clock -120
replicaset default/web taken 2: clock +120
replicaset default/web write 1: mutate
kubelet 3: hold until 60000ms
kubelet 3: pod fails
kubelet 3: pod evicted
kubelet 3: pod unready
start 1: order pos 7 for 100 steps
process 2 start 1: order pct 7 for 100 steps
";
        let schedule: Schedule = text.parse().expect("every line is well formed");
        assert_eq!(schedule.len(), 30);
        assert_eq!(schedule.to_string(), text);
    }

    #[test]
    fn a_line_that_is_no_perturbation_is_refused_with_its_reason() {
        for (line, why) in [
            ("replicaset default/web write 2 kill", "no colon ends the anchor"),
            ("replicaset write 2: kill after", "\"replicaset write 2\" is not an anchor"),
            ("replicaset default/web write two: kill after", "\"two\" is not a number"),
            ("replicaset default/web write 2: kill soon", "\"soon\" is neither before nor after"),
            ("start 1: order any 7 for 1 steps", "\"any\" is neither pos nor pct"),
            ("replicaset default/web write 2: explode", "\"explode\" is not a deviation"),
            ("cache pods delivery 2: hold until 3", "\"3\" is not a number of milliseconds, such as 500ms"),
        ] {
            let error = line.parse::<Schedule>().expect_err(line);
            assert_eq!((error.line.as_str(), error.why.as_str()), (line, why));
        }
    }

    #[test]
    fn comments_and_empty_lines_are_skipped() {
        let schedule: Schedule = "# scenario replicaset\n\n".parse().expect("there is no perturbation");
        assert!(schedule.is_empty());
    }
}
