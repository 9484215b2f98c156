//! The query of a request, and the encoding of what a URL is made of.

use std::fmt::Write as _;

/// The query of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(String);

impl Query {
    pub(crate) fn pair(mut self, key: &str, value: &str) -> Self {
        self.0.push(if self.0.is_empty() { '?' } else { '&' });
        self.0.push_str(key);
        self.0.push('=');
        push_encoded(&mut self.0, value);
        self
    }

    pub(crate) fn optional(self, key: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) if !value.is_empty() => self.pair(key, value),
            Some(_) | None => self,
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Appends `text` to a path or a query.
pub(super) fn push_encoded(into: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            into.push(char::from(byte));
        } else {
            write!(into, "%{byte:02X}").expect("writing to a string never fails");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_encoded_and_leave_out_what_is_not_given() {
        let query =
            Query::default().optional("labelSelector", Some("a in (b,c)")).optional("limit", None).pair("x", "1");
        assert_eq!(query.as_str(), "?labelSelector=a%20in%20%28b%2Cc%29&x=1");
        assert_eq!(Query::default().as_str(), "");
    }
}
