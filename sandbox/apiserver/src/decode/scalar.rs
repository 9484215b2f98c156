//! Scalars that check themselves as they are read: quantities and base64.

const QUANTITY_FORM: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Checks that text is a quantity; space around it is left out.
///
/// # Errors
///
/// What upstream's `resource.ParseQuantity` says of it.
pub(super) fn quantity(text: &str) -> Result<&str, String> {
    let text = text.trim();
    if text.parse::<kcm_api::Quantity>().is_ok() {
        return Ok(text);
    }
    let number_end = text.strip_prefix(['+', '-']).unwrap_or(text).trim_start_matches(|c: char| c.is_ascii_digit());
    let suffix = match number_end.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => number_end,
    };
    let exponent = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let is_suffix = !suffix.is_empty() && exponent.bytes().all(|byte| byte.is_ascii_digit());
    let why = if text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) && is_suffix {
        "unable to parse quantity's suffix"
    } else {
        QUANTITY_FORM
    };
    Err(why.to_owned())
}

/// Checks that text is base64 with padding; ends of lines in it are left out.
///
/// # Errors
///
/// What Go's `encoding/base64` says of it.
pub(super) fn base64(text: &str) -> Result<String, String> {
    let kept: Vec<(usize, u8)> = text.bytes().enumerate().filter(|(_, byte)| !matches!(byte, b'\r' | b'\n')).collect();
    let corrupt = |at: usize| format!("illegal base64 data at input byte {at}");
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    for (group_at, group) in kept.chunks(4).enumerate() {
        let is_last = (group_at + 1) * 4 >= kept.len();
        let digits = group.iter().take_while(|(_, byte)| is_digit(*byte)).count();
        if let Some((at, byte)) = group.get(digits) {
            let rest_is_padding = group.len() == 4 && group.iter().skip(digits).all(|(_, byte)| *byte == b'=');
            if *byte != b'=' || digits < 2 || !rest_is_padding {
                return Err(corrupt(*at));
            }
            if !is_last {
                return Err(corrupt(kept.get((group_at + 1) * 4).map_or(text.len(), |(at, _)| *at)));
            }
        } else if digits < 4 {
            return Err(corrupt(text.len() - digits));
        }
    }
    Ok(kept.into_iter().map(|(_, byte)| char::from(byte)).collect())
}

/// Bytes as base64 with padding.
pub(super) fn to_base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte)) << (8 * (3 - group.len()));
        for at in 0..4 {
            let digit = DIGITS[bits >> (18 - 6 * at) & 63];
            text.push(if at > group.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_quantity_is_told_why() {
        for text in ["1.5", "0.1000", "1024Ki", "1e3", "0", "-5m", "1."] {
            assert_eq!(quantity(text), Ok(text));
        }
        assert_eq!(quantity(" 1 "), Ok("1"));
        for text in ["", "abc", "1x", "1.2.3", "true", "1 2"] {
            assert_eq!(quantity(text), Err(QUANTITY_FORM.to_owned()), "{text}");
        }
        for text in ["1KK", "1Kim", "1mi"] {
            assert_eq!(quantity(text), Err("unable to parse quantity's suffix".to_owned()), "{text}");
        }
    }

    #[test]
    fn base64_is_told_where_it_ends_being_base64() {
        for (text, expected) in [("", Ok("")), ("YQ==", Ok("YQ==")), ("YW\nJj", Ok("YWJj"))] {
            assert_eq!(base64(text).as_deref(), expected, "{text}");
        }
        for (text, at) in [("!!", 0), ("YQ", 0), ("YWJjYQ", 4), ("YWJ!", 3), ("Y===", 1), ("YQ==YQ==", 4)] {
            assert_eq!(base64(text), Err(format!("illegal base64 data at input byte {at}")), "{text}");
        }
    }

    #[test]
    fn bytes_are_written_as_base64() {
        for (bytes, expected) in [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("abc", "YWJj"), ("abcd", "YWJjZA==")] {
            assert_eq!(to_base64(bytes.as_bytes()), expected);
        }
        assert_eq!(to_base64(&[0xff, 0xfe]), "//4=");
    }
}
