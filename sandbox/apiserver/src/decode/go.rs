//! Text in quotes, as Go prints it in errors.

/// Text in double quotes.
///
/// # Upstream
/// `strconv.Quote`
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        escape(c, '"', &mut quoted);
    }
    quoted.push('"');
    quoted
}

/// A byte as the scanner of Go's JSON decoder names it: as a character of Latin-1, in single quotes.
pub(super) fn quote_byte(byte: u8) -> String {
    let mut quoted = String::from("'");
    escape(char::from(byte), '\'', &mut quoted);
    quoted.push('\'');
    quoted
}

fn escape(c: char, delimiter: char, out: &mut String) {
    match c {
        _ if c == delimiter || c == '\\' => {
            out.push('\\');
            out.push(c);
        }
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\t' => out.push_str("\\t"),
        '\n' => out.push_str("\\n"),
        '\u{b}' => out.push_str("\\v"),
        '\u{c}' => out.push_str("\\f"),
        '\r' => out.push_str("\\r"),
        '\0'..='\u{1f}' | '\u{7f}' => push_hex(c, "\\x", 2, out),
        '\u{80}'..='\u{a0}' | '\u{ad}' | '\u{feff}' | '\u{fffd}' if c != '\u{fffd}' => {
            push_hex(c, "\\u", 4, out);
        }
        _ => out.push(c),
    }
}

fn push_hex(c: char, prefix: &str, digits: usize, out: &mut String) {
    out.push_str(prefix);
    let hex = format!("{:0digits$x}", u32::from(c));
    out.push_str(&hex);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_quoted_as_go_quotes_it() {
        for (text, expected) in [
            ("a.b", r#""a.b""#),
            ("a\"b\\é", r#""a\"b\\é""#),
            ("\n\u{1}\u{80}", r#""\n\x01\u0080""#),
            ("it's", r#""it's""#),
        ] {
            assert_eq!(quote(text), expected);
        }
        for (byte, expected) in [(b'x', "'x'"), (b'\'', r"'\''"), (b'"', "'\"'"), (b'\n', r"'\n'"), (0xc3, "'Ã'")] {
            assert_eq!(quote_byte(byte), expected);
        }
    }
}
