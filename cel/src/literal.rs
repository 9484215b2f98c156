//! Values of literal tokens.

use crate::ast::Literal;

/// Returns the value of an integer token, `hex` or decimal, with its sign.
pub(crate) fn int(text: &str, negative: bool) -> Option<i64> {
    let magnitude = match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16),
        None => text.parse(),
    }
    .ok()?;
    let magnitude = i128::try_from(magnitude).ok()?;
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

/// Returns the value of an unsigned token, which ends with `u`.
pub(crate) fn uint(text: &str) -> Option<u64> {
    let text = text.trim_end_matches(['u', 'U']);
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Returns the value of a floating point token, if it is finite.
pub(crate) fn double(text: &str, negative: bool) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    value.is_finite().then_some(if negative { -value } else { value })
}

/// Returns the value of a string or bytes token, with its prefix and quotes.
///
/// # Errors
///
/// Returns the message for an escape that is not one.
pub(crate) fn quoted(text: &str) -> Result<Literal, &'static str> {
    let body = text.trim_start_matches(['r', 'R', 'b', 'B']);
    let prefix = &text[..text.len() - body.len()];
    let raw = prefix.contains(['r', 'R']);
    let bytes = prefix.contains(['b', 'B']);
    let width = if body.len() >= 6 && (body.starts_with("'''") || body.starts_with("\"\"\"")) { 3 } else { 1 };
    let body = body[width..body.len() - width].replace("\r\n", "\n").replace('\r', "\n");
    if raw {
        return Ok(if bytes { Literal::Bytes(body.into_bytes()) } else { Literal::String(body) });
    }
    let mut out = Vec::with_capacity(body.len());
    let mut chars = body.chars();
    while let Some(c) = chars.next() {
        if c == '\\' {
            escape(&mut chars, bytes, &mut out)?;
        } else {
            push(c, &mut out);
        }
    }
    if bytes {
        return Ok(Literal::Bytes(out));
    }
    String::from_utf8(out).map(Literal::String).map_err(|_| UNESCAPE)
}

const UNESCAPE: &str = "unable to unescape string";

fn push(c: char, out: &mut Vec<u8>) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

fn escape(chars: &mut std::str::Chars<'_>, bytes: bool, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let c = chars.next().ok_or("unable to unescape string, found '\\' as last character")?;
    let control = |code: u8, out: &mut Vec<u8>| {
        out.push(code);
        Ok(())
    };
    let (digits, radix, mut code) = match c {
        'a' => return control(7, out),
        'b' => return control(8, out),
        'f' => return control(12, out),
        'n' => return control(b'\n', out),
        'r' => return control(b'\r', out),
        't' => return control(b'\t', out),
        'v' => return control(11, out),
        '\\' | '\'' | '"' | '`' | '?' => {
            push(c, out);
            return Ok(());
        }
        'x' | 'X' => (2, 16, 0),
        'u' if !bytes => (4, 16, 0),
        'U' if !bytes => (8, 16, 0),
        '0'..='3' => (2, 8, u32::from(c) - u32::from('0')),
        _ => return Err(UNESCAPE),
    };
    for _ in 0..digits {
        let digit = chars.next().and_then(|c| c.to_digit(radix));
        let digit = digit.ok_or(if radix == 8 { "unable to unescape octal sequence in string" } else { UNESCAPE })?;
        // Eight hexadecimal digits are the most, so this cannot overflow.
        code = code.wrapping_mul(radix).wrapping_add(digit);
    }
    if bytes {
        out.push(u8::try_from(code).map_err(|_| UNESCAPE)?);
    } else {
        push(char::from_u32(code).ok_or("invalid unicode code point")?, out);
    }
    Ok(())
}
