//! Warnings that the API server attaches to its answers.

use std::collections::HashSet;

use http::header::{HeaderMap, WARNING};
use parking_lot::Mutex;

/// Logs each text of a `Warning` header once.
///
/// # Guarantees
/// Bounded: after 1,000 distinct texts those seen are forgotten, so an old one may then be logged again.
#[derive(Debug, Default)]
pub struct Warnings {
    seen: Mutex<HashSet<Box<str>>>,
}

impl Warnings {
    const REMEMBERED: usize = 1000;
    const LONGEST: usize = 1000;

    /// Logs what an answer warns of, at warn level under the target `api.warning`.
    pub fn log(&self, headers: &HeaderMap) {
        for text in self.news(headers) {
            tracing::warn!(target: "api.warning", %text, "API server warns");
        }
    }

    fn news(&self, headers: &HeaderMap) -> Vec<Box<str>> {
        let texts = headers.get_all(WARNING).iter().filter_map(|value| text_of(value.to_str().ok()?));
        texts.filter(|text| self.is_new(text)).collect()
    }

    fn is_new(&self, text: &str) -> bool {
        let mut seen = self.seen.lock();
        if seen.contains(text) {
            return false;
        }
        if seen.len() >= Self::REMEMBERED {
            seen.clear();
        }
        seen.insert(text.into())
    }
}

/// The text of `299 - "text"`; other codes are not for us (RFC 7234: 299 is a miscellaneous persistent warning).
fn text_of(value: &str) -> Option<Box<str>> {
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
    Some(text.chars().take(Warnings::LONGEST).collect::<String>().into())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (WARNING, HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn each_text_is_told_once() {
        let warnings = Warnings::default();
        let first = warnings.news(&headers(&["299 - \"a is deprecated\"", "299 - \"b \\\"c\\\" is\""]));
        assert_eq!(first, ["a is deprecated".into(), "b \"c\" is".into()]);
        assert!(warnings.news(&headers(&["299 - \"a is deprecated\""])).is_empty());
    }

    #[test]
    fn what_is_no_miscellaneous_warning_is_passed_over() {
        assert!(
            Warnings::default().news(&headers(&["199 - \"x\"", "299 -", "299 - unquoted", "299 - \"open"])).is_empty()
        );
    }

    #[test]
    fn memory_is_bounded() {
        let warnings = Warnings::default();
        for number in 0..5000 {
            assert!(warnings.is_new(&number.to_string()));
        }
        assert!(warnings.seen.lock().len() <= Warnings::REMEMBERED);
    }
}
