//! Comparison of a response with the expectation of a row.

use std::fmt;

use serde_json::Value;

/// A mismatch between a response and the expectation.
#[derive(Debug, Clone, PartialEq)]
pub struct Mismatch {
    /// Place of the mismatch: a JSON pointer into the response, or its compared part.
    pub path: String,
    /// Value that the row expects.
    pub expected: Value,
    /// The actual value, if any.
    pub got: Option<Value>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, got ", self.path, self.expected)?;
        match &self.got {
            Some(got) => write!(f, "{got}"),
            None => f.write_str("nothing"),
        }
    }
}

/// The mismatches between what `expected` asks for and what was `got` at `path`.
pub(crate) fn compare(path: &str, expected: &Value, got: Option<&Value>) -> Vec<Mismatch> {
    let mut comparison = Comparison { exact: false, mismatches: Vec::new() };
    comparison.value(path, expected, got);
    comparison.mismatches
}

struct Comparison {
    /// Whether fields that are not expected are mismatches.
    exact: bool,
    mismatches: Vec<Mismatch>,
}

impl Comparison {
    fn value(&mut self, path: &str, expected: &Value, got: Option<&Value>) {
        match (expected, got) {
            (Value::String(text), _) if let Some(matches) = matches(text, got) => {
                if !matches {
                    self.mismatch(path, expected, got);
                }
            }
            (Value::Object(fields), _) if fields.len() == 1 && fields.contains_key("<exact>") => {
                let before = std::mem::replace(&mut self.exact, true);
                self.value(path, &fields["<exact>"], got);
                self.exact = before;
            }
            (Value::Object(fields), Some(Value::Array(items))) if fields.len() == 1 && fields.contains_key("<set>") => {
                self.set(path, &fields["<set>"], items);
            }
            (Value::Object(fields), Some(Value::Array(items))) if fields.len() == 1 && fields.contains_key("<has>") => {
                let wanted = fields["<has>"].as_array().map_or(&[][..], Vec::as_slice);
                let missing =
                    wanted.iter().find(|it| items.iter().all(|item| !compare(path, it, Some(item)).is_empty()));
                if let Some(missing) = missing {
                    self.mismatch(path, missing, got);
                }
            }
            (Value::Object(fields), Some(Value::Object(found))) => {
                for (key, value) in fields {
                    self.value(&format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")), value, found.get(key));
                }
                for (key, value) in found {
                    if self.exact && !fields.contains_key(key) {
                        self.mismatch(&format!("{path}/{key}"), &Value::from("<absent>"), Some(value));
                    }
                }
            }
            (Value::Array(items), Some(Value::Array(found))) if items.len() == found.len() => {
                for (index, (item, found)) in items.iter().zip(found).enumerate() {
                    self.value(&format!("{path}/{index}"), item, Some(found));
                }
            }
            (_, Some(found)) if expected == found => {}
            (_, _) => self.mismatch(path, expected, got),
        }
    }

    /// Each of `found` is one of `expected` and the other way round.
    fn set(&mut self, path: &str, expected: &Value, found: &[Value]) {
        let expected = expected.as_array().map_or(&[][..], Vec::as_slice);
        let mut left: Vec<&Value> = found.iter().collect();
        for item in expected {
            let like = |found: &&Value| {
                let mut comparison = Comparison { exact: self.exact, mismatches: Vec::new() };
                comparison.value(path, item, Some(found));
                comparison.mismatches.is_empty()
            };
            match left.iter().position(like) {
                Some(at) => drop(left.remove(at)),
                None => self.mismatch(path, item, Some(&Value::from(found))),
            }
        }
        for surplus in left {
            self.mismatch(path, &Value::from("<absent>"), Some(surplus));
        }
    }

    fn mismatch(&mut self, path: &str, expected: &Value, got: Option<&Value>) {
        self.mismatches.push(Mismatch { path: path.to_owned(), expected: expected.clone(), got: got.cloned() });
    }
}

/// Returns `Some(true)` if a value fits a matcher, and `None` if the text is no matcher.
fn matches(matcher: &str, got: Option<&Value>) -> Option<bool> {
    let matcher = matcher.strip_prefix('<')?.strip_suffix('>')?;
    let text = got.and_then(Value::as_str);
    Some(match matcher.split_once(' ').unwrap_or((matcher, "")) {
        ("any", "") => got.is_some(),
        ("absent", "") => got.is_none(),
        ("string", "") => text.is_some_and(|text| !text.is_empty()),
        ("number", "") => got.is_some_and(Value::is_number),
        ("uid", "") => text.is_some_and(is_uid),
        ("time", "") => text.is_some_and(|text| text.ends_with('Z') && text.parse::<jiff::Timestamp>().is_ok()),
        ("version", "") => text.is_some_and(|text| text.parse::<u64>().is_ok_and(|version| version > 0)),
        ("not", other) => got.is_some() && text != Some(other),
        ("like", pattern) => text.is_some_and(|text| is_like(pattern, text)),
        (_, _) => return None,
    })
}

fn is_uid(text: &str) -> bool {
    let parts: Vec<usize> = text.split('-').map(str::len).collect();
    parts == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// Returns `true` if `text` fits `pattern`, in which `*` is any text.
fn is_like(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(first) else { return false };
    // The shortest text for a `*` will do, except for the last.
    text.char_indices().map(|(at, _)| at).chain([text.len()]).any(|at| is_like(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::compare;

    fn paths(expected: &Value, got: &Value) -> Vec<String> {
        compare("", expected, Some(got)).into_iter().map(|mismatch| mismatch.path).collect()
    }

    #[test]
    fn an_object_holds_at_least_what_is_expected() {
        assert!(paths(&json!({ "a": 1 }), &json!({ "a": 1, "b": 2 })).is_empty());
        assert_eq!(paths(&json!({ "a": { "b": 1, "c": 2 } }), &json!({ "a": { "b": 2 } })), ["/a/b", "/a/c"]);
    }

    #[test]
    fn a_list_has_exactly_what_is_expected() {
        assert!(paths(&json!([{ "a": 1 }]), &json!([{ "a": 1, "b": 2 }])).is_empty());
        assert_eq!(paths(&json!([1]), &json!([1, 2])), [""]);
        assert!(paths(&json!({ "<has>": [2, 1] }), &json!([1, 2, 3])).is_empty());
        assert_eq!(paths(&json!({ "<has>": [4] }), &json!([1, 2, 3])), [""]);
        assert!(paths(&json!({ "<set>": [2, 1] }), &json!([1, 2])).is_empty());
        assert_eq!(paths(&json!({ "<set>": [2, 1] }), &json!([1, 2, 2])), [""]);
        assert_eq!(paths(&json!({ "<set>": [2, 2] }), &json!([1, 2])), ["", ""]);
    }

    #[test]
    fn an_exact_object_holds_nothing_else_at_any_depth() {
        let expected = json!({ "a": { "<exact>": { "b": [{ "c": 1 }] } } });
        assert!(paths(&expected, &json!({ "x": 1, "a": { "b": [{ "c": 1 }] } })).is_empty());
        assert_eq!(paths(&expected, &json!({ "a": { "b": [{ "c": 1, "d": 1 }], "e": 1 } })), ["/a/b/0/d", "/a/e"]);
    }

    #[test]
    fn matchers_match() {
        for (matcher, matching, other) in [
            ("<any>", json!(null), None),
            ("<string>", json!("a"), Some(json!(""))),
            ("<number>", json!(1), Some(json!("1"))),
            ("<uid>", json!("0d3f2a4e-1111-4222-8333-abcdefabcdef"), Some(json!("web"))),
            ("<time>", json!("2026-01-02T03:04:05Z"), Some(json!("2026"))),
            ("<version>", json!("12"), Some(json!("x"))),
            ("<like a*c*e>", json!("abccde"), Some(json!("abcd"))),
            ("<not a>", json!("b"), Some(json!("a"))),
            ("<none>", json!("<none>"), Some(json!("none"))),
        ] {
            let expected = json!({ "f": matcher });
            assert!(paths(&expected, &json!({ "f": matching })).is_empty(), "{matcher}");
            assert_eq!(paths(&expected, &json!({})), ["/f"], "{matcher}");
            if let Some(other) = other {
                assert_eq!(paths(&expected, &json!({ "f": other })), ["/f"], "{matcher}");
            }
        }
        assert!(paths(&json!({ "f": "<absent>" }), &json!({})).is_empty());
        assert_eq!(paths(&json!({ "f": "<absent>" }), &json!({ "f": null })), ["/f"]);
    }
}
