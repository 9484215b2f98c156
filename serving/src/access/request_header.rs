//! The user that a front proxy names in headers. Pure.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::{HeaderMap, HeaderValue};

use super::user::User;
use crate::percent::percent_decoded;

/// The headers in which a front proxy names the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HeaderNames {
    /// The headers with the name; the first that has a value counts.
    pub(crate) username: Vec<String>,
    /// The headers with the UID; the first that has a value counts.
    pub(crate) uid: Vec<String>,
    /// The headers with groups, all of which count.
    pub(crate) group: Vec<String>,
    /// Prefixes of the headers with further attributes.
    pub(crate) extra_prefixes: Vec<String>,
    /// The common names of proxies. If empty, every certificate of their CA counts.
    pub(crate) allowed_names: Vec<String>,
}

impl HeaderNames {
    /// Returns `true` if a proxy with this common name may name users.
    pub(super) fn allow(&self, common_name: &str) -> bool {
        self.allowed_names.is_empty() || self.allowed_names.iter().any(|name| name == common_name)
    }

    /// Returns the user that the headers name, or `None` if they name none.
    ///
    /// # Upstream
    /// `headerrequest` in `apiserver/pkg/authentication/request`.
    pub(super) fn user(&self, headers: &HeaderMap) -> Option<User> {
        Some(User {
            name: first(headers, &self.username)?,
            uid: first(headers, &self.uid).unwrap_or_default(),
            groups: self.groups(headers),
            extra: self.extra(headers),
        })
    }

    fn groups(&self, headers: &HeaderMap) -> Vec<String> {
        let values = self.group.iter().flat_map(|name| headers.get_all(name.trim().to_ascii_lowercase().as_str()));
        values.map(text).filter(|value| !value.is_empty()).collect()
    }

    fn extra(&self, headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for prefix in &self.extra_prefixes {
            let prefix = prefix.trim().to_ascii_lowercase();
            for (name, value) in headers {
                if let Some(key) = name.as_str().strip_prefix(prefix.as_str()) {
                    extra.entry(unescaped(key)).or_default().push(text(value));
                }
            }
        }
        extra
    }
}

fn first(headers: &HeaderMap, names: &[String]) -> Option<String> {
    let mut values = names.iter().filter_map(|name| headers.get(name.trim().to_ascii_lowercase().as_str()));
    values.find(|value| !value.is_empty()).map(text)
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// Decodes the percent-encoding of a key. A malformed key stays unchanged.
fn unescaped(key: &str) -> String {
    percent_decoded(key).map_or_else(|| key.to_owned(), Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    fn names() -> HeaderNames {
        let list = |items: &[&str]| items.iter().map(ToString::to_string).collect();
        HeaderNames {
            username: list(&["X-Remote-User", "x-other-user"]),
            uid: list(&["X-Remote-Uid"]),
            group: list(&["X-Remote-Group", "x-other-group"]),
            extra_prefixes: list(&["X-Remote-Extra-"]),
            allowed_names: list(&[]),
        }
    }

    #[test]
    fn a_user_is_read_from_all_headers() {
        let user = names().user(&headers(&[
            ("x-remote-user", ""),
            ("x-other-user", "jane"),
            ("x-remote-uid", "7"),
            ("x-remote-group", "dev"),
            ("x-remote-group", ""),
            ("x-remote-group", "ops"),
            ("x-other-group", "all"),
            ("x-remote-extra-scopes", "one"),
            ("x-remote-extra-scopes", "two"),
            ("x-remote-extra-acme.org%2fproject", "a"),
            ("x-remote-extra-bad%zz", "b"),
            ("x-else", "c"),
        ]));
        let strings = |items: &[&str]| items.iter().map(ToString::to_string).collect::<Vec<_>>();
        let expected = User {
            name: "jane".to_owned(),
            uid: "7".to_owned(),
            groups: strings(&["dev", "ops", "all"]),
            extra: [
                ("scopes".to_owned(), strings(&["one", "two"])),
                ("acme.org/project".to_owned(), strings(&["a"])),
                ("bad%zz".to_owned(), strings(&["b"])),
            ]
            .into(),
        };
        assert_eq!(user, Some(expected));
        assert_eq!(names().user(&headers(&[("x-remote-group", "dev")])), None);
    }

    #[test]
    fn every_proxy_is_allowed_unless_some_are_named() {
        assert!(names().allow("anyone") && names().allow(""));
        let named = HeaderNames { allowed_names: vec!["front-proxy-client".to_owned()], ..names() };
        assert!(named.allow("front-proxy-client") && !named.allow("anyone") && !named.allow(""));
    }
}
