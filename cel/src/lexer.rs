//! Tokens and their positions.

use crate::ast::Position;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Ident,
    Escaped,
    Int,
    Uint,
    Float,
    Quoted,
    /// An operator, a bracket or one of the words `in`, `true`, `false`, `null`.
    Fixed,
    End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: TokenKind,
    pub(crate) text: &'a str,
    pub(crate) position: Position,
}

/// Reads all tokens; the last one is the end.
///
/// # Errors
///
/// Returns the position of the first text that begins no token.
pub(crate) fn tokens(source: &str) -> Result<Vec<Token<'_>>, Position> {
    let mut found = Vec::new();
    let mut position = Position { line: 1, column: 0 };
    let mut rest = source;
    loop {
        let skipped = blank(rest);
        advance(&mut position, &rest[..skipped]);
        rest = &rest[skipped..];
        if rest.is_empty() {
            found.push(Token { kind: TokenKind::End, text: "", position });
            return Ok(found);
        }
        let (kind, length) = token(rest).ok_or(position)?;
        found.push(Token { kind, text: &rest[..length], position });
        advance(&mut position, &rest[..length]);
        rest = &rest[length..];
    }
}

fn advance(position: &mut Position, text: &str) {
    for c in text.chars() {
        if c == '\n' {
            position.line += 1;
            position.column = 0;
        } else {
            position.column += 1;
        }
    }
}

fn blank(text: &str) -> usize {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with(['\t', ' ', '\r', '\n', '\u{c}']) {
            at += 1;
        } else {
            return at;
        }
    }
}

fn token(text: &str) -> Option<(TokenKind, usize)> {
    let bytes = text.as_bytes();
    let first = *bytes.first()?;
    if let Some(length) = quoted(text) {
        return Some((TokenKind::Quoted, length));
    }
    if first.is_ascii_alphabetic() || first == b'_' {
        let length = run(bytes, |b| b.is_ascii_alphanumeric() || b == b'_');
        let kind = match &text[..length] {
            "in" | "true" | "false" | "null" => TokenKind::Fixed,
            _ => TokenKind::Ident,
        };
        return Some((kind, length));
    }
    if first.is_ascii_digit() || (first == b'.' && bytes.get(1).is_some_and(u8::is_ascii_digit)) {
        return Some(number(bytes));
    }
    if first == b'`' {
        let length = run(&bytes[1..], |b| b.is_ascii_alphanumeric() || b"_./- ".contains(&b));
        return (length > 0 && bytes.get(length + 1) == Some(&b'`')).then_some((TokenKind::Escaped, length + 2));
    }
    if ["==", "!=", "<=", ">=", "&&", "||"].iter().any(|two| text.starts_with(two)) {
        return Some((TokenKind::Fixed, 2));
    }
    b"<>[]{}().,-!?:+*/%".contains(&first).then_some((TokenKind::Fixed, 1))
}

fn run(bytes: &[u8], accept: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|b| accept(**b)).count()
}

fn number(bytes: &[u8]) -> (TokenKind, usize) {
    if bytes.starts_with(b"0x") {
        let digits = run(&bytes[2..], |b| b.is_ascii_hexdigit());
        if digits > 0 {
            return suffixed(bytes, 2 + digits);
        }
    }
    let digit = |b: u8| b.is_ascii_digit();
    let mut length = run(bytes, digit);
    let mut float = false;
    if bytes.get(length) == Some(&b'.') {
        let fraction = run(&bytes[length + 1..], digit);
        if fraction > 0 {
            length += 1 + fraction;
            float = true;
        }
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let exponent = run(bytes.get(length + 1 + sign..).unwrap_or_default(), digit);
        if exponent > 0 {
            length += 1 + sign + exponent;
            float = true;
        }
    }
    if float { (TokenKind::Float, length) } else { suffixed(bytes, length) }
}

fn suffixed(bytes: &[u8], length: usize) -> (TokenKind, usize) {
    if matches!(bytes.get(length), Some(b'u' | b'U')) {
        (TokenKind::Uint, length + 1)
    } else {
        (TokenKind::Int, length)
    }
}

fn quoted(text: &str) -> Option<usize> {
    let mut start = 0;
    let bytes = text.as_bytes();
    if matches!(bytes.first(), Some(b'b' | b'B')) {
        start += 1;
    }
    let raw = matches!(bytes.get(start), Some(b'r' | b'R'));
    start += usize::from(raw);
    let quote = *bytes.get(start).filter(|b| matches!(b, b'\'' | b'"'))?;
    if bytes[start..].starts_with(&[quote; 3])
        && let Some(end) = closing(bytes, start + 3, &[quote; 3], raw, true)
    {
        return Some(end);
    }
    closing(bytes, start + 1, &[quote], raw, false)
}

fn closing(bytes: &[u8], mut at: usize, quotes: &[u8], raw: bool, lines: bool) -> Option<usize> {
    while at < bytes.len() {
        if bytes[at..].starts_with(quotes) {
            return Some(at + quotes.len());
        }
        match bytes[at] {
            b'\n' | b'\r' if !lines => return None,
            b'\\' if !raw => {
                let next = *bytes.get(at + 1)?;
                if !b"abfnrtv\"'\\?`xXuU0123".contains(&next) {
                    return None;
                }
                at += 2;
            }
            _ => at += 1,
        }
    }
    None
}
