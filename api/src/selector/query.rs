//! The text of `labelSelector=`: `a=b,c!=d,e in (x,y),f notin (z),g,!h,i>5`.

use super::{InvalidSelector, Requirement, Selector, Test, checked_key, checked_value, checked_values};
use crate::intern::InternedStr;

impl std::str::FromStr for Selector {
    type Err = InvalidSelector;

    /// Reads a query; the empty text selects everything.
    ///
    /// # Upstream
    /// The grammar of `labels.Parse`: whitespace between tokens, `in` and `notin` as keys and values too, an absent
    /// value is the empty one (`a=`, `a in (,b)`, `a in ()`).
    fn from_str(text: &str) -> Result<Self, InvalidSelector> {
        let mut parser = Parser { text, at: 0 };
        if parser.peek() == Token::End {
            return Ok(Self::everything());
        }
        let mut requirements = vec![parser.requirement()?];
        while parser.accept(Token::Comma) {
            requirements.push(parser.requirement()?);
        }
        if parser.peek() != Token::End {
            return Err(parser.unexpected("',' or the end"));
        }
        Ok(Self::all(requirements))
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Token<'a> {
    End,
    Comma,
    Open,
    Close,
    Not,
    Equals,
    NotEquals,
    Greater,
    Less,
    Word(&'a str),
}

struct Parser<'a> {
    text: &'a str,
    /// After the last token that was taken.
    at: usize,
}

impl<'a> Parser<'a> {
    fn requirement(&mut self) -> Result<Requirement, InvalidSelector> {
        let negated = self.accept(Token::Not);
        let Some(key) = self.accept_word() else {
            return Err(self.unexpected(if negated { "a key" } else { "a key or '!'" }));
        };
        let key = checked_key(&InternedStr::from(key))?;
        let test = if negated { Test::DoesNotExist } else { self.test(&key)? };
        Ok(Requirement { key, test })
    }

    fn test(&mut self, key: &InternedStr) -> Result<Test, InvalidSelector> {
        if matches!(self.peek(), Token::End | Token::Comma) {
            Ok(Test::Exists)
        } else if self.accept(Token::Equals) {
            Ok(Test::Equals(self.value(key)?))
        } else if self.accept(Token::NotEquals) {
            Ok(Test::NotEquals(self.value(key)?))
        } else if self.accept(Token::Greater) {
            Ok(Test::Greater(self.integer(key)?))
        } else if self.accept(Token::Less) {
            Ok(Test::Less(self.integer(key)?))
        } else if self.accept(Token::Word("in")) {
            Ok(Test::In(self.values(key, "in")?))
        } else if self.accept(Token::Word("notin")) {
            Ok(Test::NotIn(self.values(key, "notin")?))
        } else {
            Err(self.unexpected("an operator, ',' or the end"))
        }
    }

    fn value(&mut self, key: &InternedStr) -> Result<InternedStr, InvalidSelector> {
        match self.accept_word() {
            Some(value) => checked_value(key, &InternedStr::from(value)),
            None if matches!(self.peek(), Token::End | Token::Comma) => Ok(InternedStr::default()),
            None => Err(self.unexpected("a value")),
        }
    }

    fn integer(&mut self, key: &InternedStr) -> Result<i64, InvalidSelector> {
        let value = self.value(key)?;
        value.parse().map_err(|_| InvalidSelector::NotAnInteger { key: key.to_string(), value: value.to_string() })
    }

    fn values(&mut self, key: &InternedStr, operator: &'static str) -> Result<Box<[InternedStr]>, InvalidSelector> {
        if !self.accept(Token::Open) {
            return Err(self.unexpected("'('"));
        }
        let mut values = Vec::new();
        loop {
            values.push(InternedStr::from(self.accept_word().unwrap_or_default()));
            if self.accept(Token::Close) {
                return checked_values(key, &values, operator);
            }
            if !self.accept(Token::Comma) {
                return Err(self.unexpected("',' or ')'"));
            }
        }
    }

    fn accept(&mut self, wanted: Token<'_>) -> bool {
        let (token, start, length) = self.token();
        let accepted = token == wanted;
        if accepted {
            self.at = start + length;
        }
        accepted
    }

    fn accept_word(&mut self) -> Option<&'a str> {
        let (Token::Word(word), start, length) = self.token() else { return None };
        self.at = start + length;
        Some(word)
    }

    fn peek(&self) -> Token<'a> {
        self.token().0
    }

    fn unexpected(&self, expected: &'static str) -> InvalidSelector {
        let (_, at, length) = self.token();
        let found = self.text[at..at + length].to_owned();
        InvalidSelector::Syntax { text: self.text.to_owned(), at, found, expected }
    }

    /// Returns the next token, its start and its length.
    fn token(&self) -> (Token<'a>, usize, usize) {
        let rest = self.text[self.at..].trim_start_matches([' ', '\t', '\r', '\n']);
        let start = self.text.len() - rest.len();
        let (token, length) = match rest.as_bytes() {
            [] => (Token::End, 0),
            [b',', ..] => (Token::Comma, 1),
            [b'(', ..] => (Token::Open, 1),
            [b')', ..] => (Token::Close, 1),
            [b'!', b'=', ..] => (Token::NotEquals, 2),
            [b'!', ..] => (Token::Not, 1),
            [b'=', b'=', ..] => (Token::Equals, 2),
            [b'=', ..] => (Token::Equals, 1),
            [b'>', ..] => (Token::Greater, 1),
            [b'<', ..] => (Token::Less, 1),
            _word => {
                let end = rest.find([' ', '\t', '\r', '\n', ',', '(', ')', '!', '=', '>', '<']);
                let word = &rest[..end.unwrap_or(rest.len())];
                (Token::Word(word), word.len())
            }
        };
        (token, start, length)
    }
}
