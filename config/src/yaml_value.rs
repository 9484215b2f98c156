//! A YAML or JSON document as a JSON value, for files that hold objects of the API.

use serde_json::{Map, Value};

use crate::yaml::{self, Content, Node};

/// A document that is neither YAML nor JSON, or uses features of YAML that are not supported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct NotYaml {
    line: usize,
    reason: String,
}

/// Reads the only document of `bytes`. An empty document is `null`.
///
/// Text without quotes is a number, a boolean or null if it has the form of one. Of equal keys the last counts.
///
/// # Errors
/// The document is not valid, or has anchors, aliases, merge keys or tags.
pub fn yaml_value(bytes: &[u8]) -> Result<Value, NotYaml> {
    let root =
        yaml::parse(bytes).map_err(|failure| NotYaml { line: failure.at.line, reason: failure.problem.to_string() })?;
    Ok(root.as_ref().map_or(Value::Null, value))
}

fn value(node: &Node) -> Value {
    match &node.content {
        Content::Plain(text) => plain(text),
        Content::Quoted(text) => Value::String(text.clone()),
        Content::List(items) => items.iter().map(value).collect(),
        Content::Map(entries) => {
            Value::Object(entries.iter().map(|(key, node)| (key.text.clone(), value(node))).collect::<Map<_, _>>())
        }
    }
}

fn plain(text: &str) -> Value {
    if yaml::is_null(text) {
        return Value::Null;
    }
    match serde_json::from_str(text) {
        Ok(typed @ (Value::Bool(_) | Value::Number(_))) => typed,
        Ok(_) | Err(_) => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_is_read_with_the_types_of_its_scalars() {
        let text =
            "kind: Pod\nspec:\n  volumes: [{ name: vol }]\n  hostPID: true\n  seconds: 30\n  text: '30'\n  none: ~\n";
        let expected = json!({
            "kind": "Pod",
            "spec": { "volumes": [{ "name": "vol" }], "hostPID": true, "seconds": 30, "text": "30", "none": null },
        });
        assert_eq!(yaml_value(text.as_bytes()), Ok(expected.clone()));
        assert_eq!(yaml_value(expected.to_string().as_bytes()), Ok(expected));
        assert_eq!(yaml_value(b""), Ok(Value::Null));
        assert!(yaml_value(b"a: [").is_err());
    }
}
