//! Acceptance of regular expressions as Go's package `regexp` has it, without building anything.

use crate::ast::Literal;

/// Number of repetitions that an expression may ask for. Nested repetitions are multiplied.
const MAX_REPEAT: u64 = 1000;
/// Depth of an expression.
const MAX_HEIGHT: u64 = 1000;
/// Number of instructions of a compiled expression.
const MAX_SIZE: u64 = (128 << 20) / 40;

pub(super) fn is_literal(literal: &Literal) -> bool {
    if let Literal::String(text) = literal { accepts(text) } else { false }
}

/// Returns `true` if Go compiles the text as a regular expression.
pub(super) fn accepts(text: &str) -> bool {
    let mut parser = Parser { rest: text, groups: vec![Group::default()] };
    parser.run().is_some() && parser.groups.len() == 1
}

/// Measures of a part of an expression.
#[derive(Clone, Copy)]
struct Part {
    repeat: u64,
    size: u64,
    height: u64,
}

const CHARACTER: Part = Part { repeat: 1, size: 1, height: 1 };

impl Part {
    fn beside(self, other: Self) -> Self {
        Self {
            repeat: self.repeat.max(other.repeat),
            size: self.size.saturating_add(other.size),
            height: self.height.max(other.height),
        }
    }

    fn inside(self, size: u64) -> Option<Self> {
        let part = Self { size: self.size.saturating_add(size), height: self.height + 1, ..self };
        (part.height <= MAX_HEIGHT && part.size <= MAX_SIZE).then_some(part)
    }
}

/// The parts after an open parenthesis.
#[derive(Default)]
struct Group {
    captures: bool,
    /// Everything but the last part, which a repetition would repeat.
    before: Option<Part>,
    last: Option<Part>,
}

impl Group {
    fn fold(&mut self) {
        self.before = match (self.before, self.last.take()) {
            (Some(before), Some(last)) => Some(before.beside(last)),
            (before, last) => before.or(last),
        };
    }
}

struct Parser<'a> {
    rest: &'a str,
    groups: Vec<Group>,
}

impl<'a> Parser<'a> {
    fn push(&mut self, part: Part) -> Option<()> {
        let group = self.groups.last_mut()?;
        group.fold();
        group.last = Some(part);
        Some(())
    }

    fn eat(&mut self, text: &str) -> bool {
        self.rest.strip_prefix(text).is_some_and(|rest| {
            self.rest = rest;
            true
        })
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next()?;
        self.rest = chars.as_str();
        Some(next)
    }

    /// Reads everything. `None` if something is refused.
    fn run(&mut self) -> Option<()> {
        let mut repeated = false;
        while !self.rest.is_empty() {
            let was_repeated = std::mem::take(&mut repeated);
            if self.eat("(?") {
                self.flags()?;
            } else if self.eat("(") {
                self.groups.push(Group { captures: true, ..Group::default() });
            } else if self.eat("|") {
                let group = self.groups.last_mut()?;
                group.fold();
            } else if self.eat(")") {
                self.close()?;
            } else if self.rest.starts_with('[') {
                self.class()?;
                self.push(CHARACTER)?;
            } else if self.eat("*") || self.eat("+") || self.eat("?") {
                self.repeat(0, None, was_repeated)?;
                repeated = true;
            } else if self.rest.starts_with('{') {
                if let Some((bounds, rest)) = self.bounds() {
                    self.rest = rest;
                    let (min, max) = bounds?;
                    self.repeat(min, max, was_repeated)?;
                    repeated = true;
                } else {
                    self.next();
                    self.push(CHARACTER)?;
                }
            } else if self.rest.starts_with('\\') {
                self.backslash()?;
            } else {
                self.next();
                self.push(CHARACTER)?;
            }
        }
        Some(())
    }

    fn close(&mut self) -> Option<()> {
        let mut group = self.groups.pop()?;
        if self.groups.is_empty() {
            return None;
        }
        group.fold();
        let part = group.before.unwrap_or(CHARACTER);
        self.push(if group.captures { part.inside(2)? } else { part })
    }

    fn repeat(&mut self, min: u64, max: Option<u64>, was_repeated: bool) -> Option<()> {
        self.eat("?");
        let group = self.groups.last_mut()?;
        let last = group.last.filter(|_| !was_repeated)?;
        let times = max.unwrap_or(min);
        let repeat = if max == Some(0) { 1 } else { last.repeat * times.max(1) };
        let size = last.size.saturating_mul(times.saturating_sub(1)).saturating_add(2);
        group.last = Some(Part { repeat, ..last.inside(size)? });
        (repeat <= MAX_REPEAT).then_some(())
    }

    /// Reads `{2}`, `{2,}` or `{2,3}`. The outer option is empty if the brace is a character, the inner one if the
    /// numbers are refused.
    #[expect(clippy::type_complexity, reason = "the two options are explained where they are read")]
    fn bounds(&self) -> Option<(Option<(u64, Option<u64>)>, &'a str)> {
        let (min, rest) = number(self.rest.strip_prefix('{')?)?;
        let (max, rest) = match rest.strip_prefix(',') {
            None => (Some(min), rest),
            Some(rest) if rest.starts_with('}') => (None, rest),
            Some(rest) => {
                let (max, rest) = number(rest)?;
                (Some(max), rest)
            }
        };
        let rest = rest.strip_prefix('}')?;
        let valid = min <= MAX_REPEAT && max.is_none_or(|max| max <= MAX_REPEAT && min <= max);
        Some((valid.then_some((min, max)), rest))
    }

    /// Reads the rest of a group that begins with a question mark.
    fn flags(&mut self) -> Option<()> {
        if self.eat("P<") || self.eat("<") {
            let (name, rest) = self.rest.split_once('>')?;
            self.rest = rest;
            self.groups.push(Group { captures: true, ..Group::default() });
            let valid = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            return valid.then_some(());
        }
        let (mut negated, mut flag) = (false, false);
        loop {
            match self.next()? {
                'i' | 'm' | 's' | 'U' => flag = true,
                '-' if !negated => (negated, flag) = (true, false),
                end @ (':' | ')') if flag || !negated => {
                    if end == ':' {
                        self.groups.push(Group::default());
                    }
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    fn backslash(&mut self) -> Option<()> {
        if self.eat("\\Q") {
            let (literal, rest) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
            self.rest = rest;
            return literal.chars().try_for_each(|_| self.push(CHARACTER));
        }
        let assertion = ["\\A", "\\b", "\\B", "\\z"].iter().any(|each| self.eat(each));
        if !assertion && !self.named_class()? {
            self.escape()?;
        }
        self.push(CHARACTER)
    }

    /// Reads `\d`, `\pL` or `\p{Greek}` if one of them comes next.
    fn named_class(&mut self) -> Option<bool> {
        if ["\\d", "\\D", "\\s", "\\S", "\\w", "\\W"].iter().any(|each| self.eat(each)) {
            return Some(true);
        }
        if !self.eat("\\p") && !self.eat("\\P") {
            return Some(false);
        }
        let name = if self.eat("{") {
            let (name, rest) = self.rest.split_once('}')?;
            self.rest = rest;
            name
        } else {
            let start = self.rest;
            self.next()?;
            &start[..start.len() - self.rest.len()]
        };
        is_unicode_class(name.strip_prefix('^').unwrap_or(name)).then_some(true)
    }

    /// Reads an escaped character.
    fn escape(&mut self) -> Option<char> {
        self.eat("\\");
        match self.next()? {
            first @ '0'..='7' => {
                let more = self.rest.bytes().take(2).take_while(|b| matches!(b, b'0'..=b'7')).count();
                // A digit alone would refer to a group.
                if first != '0' && more == 0 {
                    return None;
                }
                let (digits, rest) = self.rest.split_at(more);
                self.rest = rest;
                char::from_u32(u32::from_str_radix(&format!("{first}{digits}"), 8).ok()?)
            }
            'x' if self.eat("{") => {
                let (digits, rest) = self.rest.split_once('}')?;
                self.rest = rest;
                let digits = Some(digits).filter(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_hexdigit()))?;
                let digits = digits.trim_start_matches('0');
                let code = if digits.is_empty() { 0 } else { u32::from_str_radix(digits, 16).ok()? };
                // Go takes surrogates here, which compare as any other code point.
                (code <= 0x10_ffff).then_some(char::from_u32(code).unwrap_or('\u{fffd}'))
            }
            'x' => {
                let high = self.next()?.to_digit(16)?;
                let low = self.next()?.to_digit(16)?;
                char::from_u32(high * 16 + low)
            }
            'a' => Some('\x07'),
            'f' => Some('\x0c'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'v' => Some('\x0b'),
            other => (other.is_ascii() && !other.is_ascii_alphanumeric()).then_some(other),
        }
    }

    fn class(&mut self) -> Option<()> {
        self.next();
        self.eat("^");
        let mut first = true;
        while first || !self.eat("]") {
            first = false;
            if let Some(name) = self.rest.strip_prefix("[:")
                && let Some((name, rest)) = name.split_once(":]")
            {
                self.rest = rest;
                is_posix_class(name.strip_prefix('^').unwrap_or(name)).then_some(())?;
                continue;
            }
            if self.named_class()? {
                continue;
            }
            let low = self.class_character()?;
            let range = self.rest.strip_prefix('-').is_some_and(|rest| !rest.is_empty() && !rest.starts_with(']'));
            if range {
                self.next();
                let high = self.class_character()?;
                (low <= high).then_some(())?;
            }
        }
        Some(())
    }

    fn class_character(&mut self) -> Option<char> {
        if self.rest.starts_with('\\') { self.escape() } else { self.next() }
    }
}

/// Reads a number without leading zeros. Numbers that are too large are the largest.
fn number(text: &str) -> Option<(u64, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(length);
    if digits.is_empty() || (length > 1 && digits.starts_with('0')) {
        return None;
    }
    Some((digits.parse().unwrap_or(u64::MAX), rest))
}

fn is_posix_class(name: &str) -> bool {
    [
        "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper",
        "word", "xdigit",
    ]
    .contains(&name)
}

/// Returns `true` if Go knows a category or script. Case, spaces, underscores and hyphens do not matter.
fn is_unicode_class(name: &str) -> bool {
    let canonical: String =
        name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).map(|c| c.to_ascii_lowercase()).collect();
    include_str!("unicode_classes.txt").lines().any(|known| known == canonical)
}

#[cfg(test)]
mod tests {
    use super::accepts;

    #[test]
    fn accepts_what_go_compiles() {
        let rows = include_str!("../../tests/data/regular_expressions.jsonl").lines();
        let wrong: Vec<String> = rows
            .map(|row| serde_json::from_str::<(String, bool)>(row).expect("the corpus must be well formed"))
            .filter(|(expression, valid)| accepts(expression) != *valid)
            .map(|(expression, valid)| format!("{expression:?} is valid for Go: {valid}"))
            .collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
