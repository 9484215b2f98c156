//! The warnings in the responses of the API server.

use std::collections::HashSet;

use http::header::{HeaderMap, WARNING};
use parking_lot::Mutex;

/// A log of the `Warning` headers of responses, each message once.
///
/// # Guarantees
/// Bounded: after 1,000 distinct messages the set is cleared, so an old one may be logged again.
#[derive(Debug, Default)]
pub struct Warnings {
    seen: Mutex<HashSet<Box<str>>>,
}

impl Warnings {
    const MAX_SEEN: usize = 1000;
    const MAX_LENGTH: usize = 1000;

    /// Logs the warnings of a response, at warn level under the target `api.warning`.
    pub fn log(&self, headers: &HeaderMap) {
        for text in self.unseen(headers) {
            tracing::warn!(target: "api.warning", %text, "API server warns");
        }
    }

    fn unseen(&self, headers: &HeaderMap) -> Vec<Box<str>> {
        let messages = headers.get_all(WARNING).iter().filter_map(|value| message_of(value.to_str().ok()?));
        messages.filter(|text| self.is_new(text)).collect()
    }

    fn is_new(&self, text: &str) -> bool {
        let mut seen = self.seen.lock();
        if seen.contains(text) {
            return false;
        }
        if seen.len() >= Self::MAX_SEEN {
            seen.clear();
        }
        seen.insert(text.into())
    }
}

/// The message of `299 - "message"`; other codes are ignored (RFC 7234: 299 is a miscellaneous persistent warning).
fn message_of(value: &str) -> Option<Box<str>> {
    let (_agent, quoted) = value.strip_prefix("299 ")?.split_once(' ')?;
    let mut text = String::new();
    let mut characters = quoted.strip_prefix('"')?.chars();
    loop {
        match characters.next()? {
            '"' => break,
            '\\' => text.push(characters.next()?),
            other => text.push(other),
        }
    }
    Some(text.chars().take(Warnings::MAX_LENGTH).collect::<String>().into())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (WARNING, HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn each_message_is_logged_once() {
        let warnings = Warnings::default();
        let first = warnings.unseen(&headers(&["299 - \"a is deprecated\"", "299 - \"b \\\"c\\\" is\""]));
        assert_eq!(first, ["a is deprecated".into(), "b \"c\" is".into()]);
        assert!(warnings.unseen(&headers(&["299 - \"a is deprecated\""])).is_empty());
    }

    #[test]
    fn other_warning_codes_are_ignored() {
        assert!(
            Warnings::default()
                .unseen(&headers(&["199 - \"x\"", "299 -", "299 - unquoted", "299 - \"open"]))
                .is_empty()
        );
    }

    #[test]
    fn memory_is_bounded() {
        let warnings = Warnings::default();
        for number in 0..5000 {
            assert!(warnings.is_new(&number.to_string()));
        }
        assert!(warnings.seen.lock().len() <= Warnings::MAX_SEEN);
    }
}
