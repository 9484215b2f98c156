//! Percent-encoding in paths and headers. Pure.

use std::borrow::Cow;

/// Decodes the percent-encoding of `text`. Returns `None` if it is malformed, or if the result is not UTF-8.
pub(super) fn percent_decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(text.into());
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let mut digit = || char::from(bytes.next()?).to_digit(16);
            let value = digit()? << 4 | digit()?;
            decoded.push(u8::try_from(value).ok()?);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::percent_decoded;

    #[test]
    fn what_is_encoded_is_decoded_and_what_is_malformed_is_refused() {
        for (text, expected) in [
            ("/metrics", Some("/metrics")),
            ("/m%65trics", Some("/metrics")),
            ("/%2Fa%2f+", Some("//a/+")),
            ("/%c3%a4", Some("/ä")),
            ("/%c3", None),
            ("/%", None),
            ("/%4", None),
            ("/%4g", None),
            ("/%+1", None),
        ] {
            assert_eq!(percent_decoded(text).as_deref(), expected, "{text}");
        }
    }
}
