//! Parser of behaviour phrases in annotations and scenario files.

use std::time::Duration;

use super::{Behaviour, End, Pull, Range, Ready, Stop};

/// A phrase that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct PhraseError {
    /// Byte offset of the invalid word.
    pub(crate) at: usize,
    problem: String,
}

impl PhraseError {
    fn new(at: usize, problem: impl Into<String>) -> Self {
        Self { at, problem: problem.into() }
    }
}

const WORDS: &str = "start, pull, ready, run, crash, finish, exit, after, times, stop";
const DEFAULT_AFTER: Range = Range::millis(1_000, 1_000);

/// The parsed words about termination.
#[derive(Default)]
struct Ending {
    said: Option<(usize, Option<i32>)>,
    after: Option<(usize, Range)>,
    times: Option<(usize, u32)>,
}

impl std::str::FromStr for Behaviour {
    type Err = PhraseError;

    /// Parses words separated by spaces or commas.
    fn from_str(text: &str) -> Result<Self, PhraseError> {
        let mut behaviour = Self::default();
        let mut ending = Ending::default();
        for (at, word) in words(text) {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word, None),
            };
            let value = Value { at, name, text: value };
            match name {
                "start" => once(&mut behaviour.start, value.range()?, at, name)?,
                "pull" => {
                    let pull = if value.is("fails") { Pull::Fails } else { Pull::Takes(value.range()?) };
                    once(&mut behaviour.pull, pull, at, name)?;
                }
                "ready" => {
                    let ready = if value.is("never") { Ready::Never } else { Ready::After(value.range()?) };
                    once(&mut behaviour.ready, ready, at, name)?;
                }
                "stop" => {
                    let stop = if value.is("never") {
                        Stop::Never
                    } else if value.is("stuck") {
                        Stop::Stuck
                    } else {
                        Stop::After(value.range()?)
                    };
                    once(&mut behaviour.stop, stop, at, name)?;
                }
                "run" => once(&mut ending.said, (at, value.none(None)?), at, name)?,
                "crash" => once(&mut ending.said, (at, value.none(Some(1))?), at, name)?,
                "finish" => once(&mut ending.said, (at, value.none(Some(0))?), at, name)?,
                "exit" => once(&mut ending.said, (at, Some(value.code()?)), at, name)?,
                "after" => once(&mut ending.after, (at, value.range()?), at, name)?,
                "times" => once(&mut ending.times, (at, value.number()?), at, name)?,
                _ => return Err(PhraseError::new(at, format!("unknown word {name:?}, known are {WORDS}"))),
            }
        }
        behaviour.end = ending.put_together()?;
        Ok(behaviour)
    }
}

impl Ending {
    fn put_together(self) -> Result<Option<End>, PhraseError> {
        let Some((_, Some(code))) = self.said else {
            let lonely = self.after.map(|(at, _)| (at, "after")).or(self.times.map(|(at, _)| (at, "times")));
            if let Some((at, word)) = lonely {
                return Err(PhraseError::new(
                    at,
                    format!("{word} belongs to crash, finish or exit, and there is none"),
                ));
            }
            return Ok(self.said.map(|_| End::Never));
        };
        let after = self.after.map_or(DEFAULT_AFTER, |(_, after)| after);
        Ok(Some(End::Exits { code, after, times: self.times.map(|(_, times)| times) }))
    }
}

fn once<T>(place: &mut Option<T>, value: T, at: usize, name: &str) -> Result<(), PhraseError> {
    if place.is_some() {
        return Err(PhraseError::new(at, format!("{name} contradicts an earlier word")));
    }
    *place = Some(value);
    Ok(())
}

/// Splits a phrase into words with their byte offsets.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let separator = |character: char| character.is_whitespace() || character == ',';
    text.split(separator)
        .map(move |word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
        .filter(|(_, word)| !word.is_empty())
}

#[derive(Clone, Copy)]
struct Value<'a> {
    at: usize,
    name: &'a str,
    text: Option<&'a str>,
}

impl Value<'_> {
    fn is(self, word: &str) -> bool {
        self.text == Some(word)
    }

    fn none<T>(self, meaning: T) -> Result<T, PhraseError> {
        match self.text {
            None => Ok(meaning),
            Some(_) => Err(PhraseError::new(self.at, format!("{} takes no value", self.name))),
        }
    }

    fn wrong(self, expected: &str) -> PhraseError {
        let given = self.text.map_or_else(|| "nothing".to_owned(), |value| format!("{value:?}"));
        PhraseError::new(self.at, format!("{} takes {expected}, not {given}", self.name))
    }

    fn range(self) -> Result<Range, PhraseError> {
        let wrong = || self.wrong("a time such as 5s or 1s..3s");
        let value = self.text.ok_or_else(wrong)?;
        let (min, max) = value.split_once("..").unwrap_or((value, value));
        let range = Range { min: time(min).ok_or_else(wrong)?, max: time(max).ok_or_else(wrong)? };
        if range.min <= range.max { Ok(range) } else { Err(wrong()) }
    }

    fn code(self) -> Result<i32, PhraseError> {
        let code = self.text.and_then(|value| value.parse().ok()).filter(|code| (0..=255).contains(code));
        code.ok_or_else(|| self.wrong("a number from 0 to 255"))
    }

    fn number(self) -> Result<u32, PhraseError> {
        self.text.and_then(|value| value.parse().ok()).ok_or_else(|| self.wrong("a number"))
    }
}

/// `500ms`, `1.5s`, `2m`, `1h`; a day at most.
pub(super) fn time(text: &str) -> Option<Duration> {
    let unit = text.find(|character: char| character.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit);
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    if !number.starts_with(|character: char| character.is_ascii_digit()) {
        return None;
    }
    let seconds = number.parse::<f64>().ok()? * seconds;
    (0.0..=86_400.0).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Behaviour, PhraseError> {
        text.parse()
    }

    #[test]
    fn phrases_parse_to_behaviour() {
        let nothing = Behaviour::default();
        let exits = |code, after, times| Some(End::Exits { code, after, times });
        let second = Range::millis(1_000, 1_000);
        for (text, expected) in [
            ("", nothing),
            ("start=1s..3s", Behaviour { start: Some(Range::millis(1_000, 3_000)), ..nothing }),
            ("pull=fails", Behaviour { pull: Some(Pull::Fails), ..nothing }),
            ("pull=0.5s", Behaviour { pull: Some(Pull::Takes(Range::millis(500, 500))), ..nothing }),
            ("ready=never", Behaviour { ready: Some(Ready::Never), ..nothing }),
            ("ready=2m", Behaviour { ready: Some(Ready::After(Range::millis(120_000, 120_000))), ..nothing }),
            ("run", Behaviour { end: Some(End::Never), ..nothing }),
            ("crash", Behaviour { end: exits(1, second, None), ..nothing }),
            ("crash after=5s times=3", Behaviour { end: exits(1, Range::millis(5_000, 5_000), Some(3)), ..nothing }),
            ("after=5s,exit=137", Behaviour { end: exits(137, Range::millis(5_000, 5_000), None), ..nothing }),
            ("finish", Behaviour { end: exits(0, second, None), ..nothing }),
            ("stop=stuck", Behaviour { stop: Some(Stop::Stuck), ..nothing }),
            ("stop=never", Behaviour { stop: Some(Stop::Never), ..nothing }),
            ("  stop=1s, run  ", Behaviour { stop: Some(Stop::After(second)), end: Some(End::Never), ..nothing }),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn errors_have_the_offset_of_the_invalid_word() {
        for (text, at, problem) in [
            ("crahs", 0, "unknown word \"crahs\", known are"),
            ("run crash", 4, "crash contradicts an earlier word"),
            ("start=soon", 0, "start takes a time such as 5s or 1s..3s, not \"soon\""),
            ("start", 0, "start takes a time such as 5s or 1s..3s, not nothing"),
            ("start=3s..1s", 0, "start takes a time"),
            ("start=5", 0, "start takes a time"),
            ("start=-5s", 0, "start takes a time"),
            ("start=infs", 0, "start takes a time"),
            ("exit=256", 0, "exit takes a number from 0 to 255"),
            ("ready=1s  after=5s", 10, "after belongs to crash, finish or exit"),
            ("run times=3", 4, "times belongs to crash, finish or exit"),
            ("crash=yes", 0, "crash takes no value"),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!(error.at, at, "{text}");
            assert!(error.problem.starts_with(problem), "{text}: {}", error.problem);
        }
    }
}
