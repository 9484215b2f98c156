//! Strings as `strconv.Quote` of Go prints them.

use std::fmt::Write as _;

/// Appends `text` in double quotes, and escapes characters that are not printable.
pub(super) fn quote(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            ' '..='~' => out.push(character),
            '\0'..='\x7f' => escape(out, "\\x", 2, character),
            _ if is_printable(character) => out.push(character),
            '\u{80}'..='\u{ffff}' => escape(out, "\\u", 4, character),
            _ => escape(out, "\\U", 8, character),
        }
    }
    out.push('"');
}

fn escape(out: &mut String, prefix: &str, width: usize, character: char) {
    write!(out, "{prefix}{:0width$x}", u32::from(character)).expect("a string takes everything");
}

/// Returns `true` if a character beyond ASCII is printable. The standard library shows its table only by escaping; a
/// combining mark is escaped at the start of a string alone.
fn is_printable(character: char) -> bool {
    let mut buffer = [b'a'; 5];
    let length = 1 + character.encode_utf8(&mut buffer[1..]).len();
    str::from_utf8(&buffer[..length]).is_ok_and(|text| text.escape_debug().nth(1) == Some(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_as_go_quotes_them() {
        // The right side is the output of `strconv.Quote`.
        let cases = [
            ("", r#""""#),
            ("a b", r#""a b""#),
            (r#"say "hi" \o/"#, r#""say \"hi\" \\o/""#),
            ("\x07\x08\x0c\n\r\t\x0b", r#""\a\b\f\n\r\t\v""#),
            ("\0\x1b\x7f", r#""\x00\x1b\x7f""#),
            ("é 世 e\u{301} 🦀", "\"é 世 e\u{301} 🦀\""),
            ("\u{a0}\u{ad}\u{200b}\u{2028}\u{feff}", r#""\u00a0\u00ad\u200b\u2028\ufeff""#),
            ("\u{e0001}", r#""\U000e0001""#),
        ];
        for (text, expected) in cases {
            let mut out = String::new();
            quote(&mut out, text);
            assert_eq!(out, expected);
        }
    }
}
