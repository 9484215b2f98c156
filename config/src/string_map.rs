//! A map of strings in a small YAML file, such as a manifest of allowed label values.

use std::collections::BTreeMap;

use crate::yaml::{Content, Node, parse};

/// A file without the expected map.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoStringMap {
    /// The text is neither YAML nor JSON.
    #[error("line {line}: {problem}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// Problem that the parser found.
        problem: String,
    },
    /// The key is not there, or its value is not a map of strings.
    #[error("it has no {0:?} with a map of strings")]
    Shape(String),
}

/// Returns the map of strings under `key` in a YAML or JSON document.
///
/// # Errors
/// If the document is malformed, or has no such map.
pub fn string_map(bytes: &[u8], key: &str) -> Result<BTreeMap<String, String>, NoStringMap> {
    let document = parse(bytes)
        .map_err(|failure| NoStringMap::Syntax { line: failure.at.line, problem: failure.problem.to_string() })?;
    let shape = || NoStringMap::Shape(key.to_owned());
    let Some(Node { content: Content::Map(entries), .. }) = document else { return Err(shape()) };
    let found = entries.into_iter().find(|(scalar, _)| scalar.text == key).map(|(_, node)| node.content);
    let Some(Content::Map(pairs)) = found else { return Err(shape()) };
    let pairs = pairs.into_iter().map(|(name, value)| match value.content {
        Content::Plain(text) | Content::Quoted(text) => Ok((name.text, text)),
        Content::List(_) | Content::Map(_) => Err(shape()),
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_is_read_from_yaml_and_json() {
        let expected = BTreeMap::from([("m,l".to_owned(), "a,b".to_owned())]);
        for text in ["allowed:\n  m,l: a,b\n", r#"{"allowed": {"m,l": "a,b"}}"#] {
            assert_eq!(string_map(text.as_bytes(), "allowed").ok().as_ref(), Some(&expected), "{text}");
        }
    }

    #[test]
    fn a_document_without_the_map_is_refused() {
        for (text, message) in [
            ("", "it has no \"allowed\" with a map of strings"),
            ("allowed: [a]", "it has no \"allowed\" with a map of strings"),
            ("allowed:\n  a: [b]", "it has no \"allowed\" with a map of strings"),
        ] {
            let error = string_map(text.as_bytes(), "allowed").expect_err(text);
            assert_eq!(error.to_string(), message, "{text}");
        }
        assert!(matches!(string_map(b"a: [", "allowed"), Err(NoStringMap::Syntax { .. })));
    }
}
