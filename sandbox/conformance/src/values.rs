//! The values that replace `{{name}}`.

use std::collections::BTreeMap;

use serde_json::Value;

/// Named values of one run of a row.
#[derive(Debug)]
pub(crate) struct Values(BTreeMap<String, String>);

impl Values {
    pub(crate) fn of_namespace(namespace: &str) -> Self {
        let prefixes = [
            ("core", "/api/v1"),
            ("apps", "/apis/apps/v1"),
            ("batch", "/apis/batch/v1"),
            ("policy", "/apis/policy/v1"),
            ("autoscaling", "/apis/autoscaling/v2"),
        ];
        let paths = prefixes.map(|(name, prefix)| (name.to_owned(), format!("{prefix}/namespaces/{namespace}")));
        Self([("ns".to_owned(), namespace.to_owned())].into_iter().chain(paths).collect())
    }

    pub(crate) fn save(&mut self, name: &str, value: String) {
        self.0.insert(name.to_owned(), value);
    }

    /// `text` with every `{{name}}` replaced; the first unknown name is the error.
    pub(crate) fn fill_text(&self, text: &str) -> Result<String, String> {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, after) = after.split_once("}}").ok_or_else(|| text.to_owned())?;
            filled.push_str(before);
            filled.push_str(self.0.get(name).ok_or_else(|| name.to_owned())?);
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// `value` with every `{{name}}` in its strings and keys replaced.
    pub(crate) fn fill(&self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => Value::String(self.fill_text(text)?),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.fill(item)).collect::<Result<_, _>>()?),
            Value::Object(fields) => {
                let filled = fields.iter().map(|(key, value)| Ok((self.fill_text(key)?, self.fill(value)?)));
                Value::Object(filled.collect::<Result<_, String>>()?)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Values;

    #[test]
    fn names_are_replaced_in_strings_and_keys() {
        let mut values = Values::of_namespace("mine");
        values.save("uid", "7".to_owned());
        let filled = values.fill(&json!({ "{{ns}}": ["{{core}}/pods/{{uid}}", 1] }));
        assert_eq!(filled, Ok(json!({ "mine": ["/api/v1/namespaces/mine/pods/7", 1] })));
    }

    #[test]
    fn a_name_that_stands_for_nothing_is_an_error() {
        assert_eq!(Values::of_namespace("mine").fill_text("{{rv}}"), Err("rv".to_owned()));
    }
}
