//! Compares an object with a configuration.

use serde_json::Value;

use crate::document::Document;

impl Document {
    /// Returns `true` if the object has every field of `configuration` with its value. Other fields do not matter.
    ///
    /// Items of a list are compared one by one, and an object with more or fewer items differs. `null` means that a
    /// field is absent. The API server may serve a value in another form than it received, such as a quantity: then the
    /// object always differs.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let deployment = kcm_api::Document::parse(r#"{"spec": {"replicas": 2, "minReadySeconds": 0}}"#)?;
    /// assert!(deployment.is_configured(&serde_json::json!({ "spec": { "replicas": 2 } })));
    /// assert!(!deployment.is_configured(&serde_json::json!({ "spec": { "replicas": 3 } })));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn is_configured(&self, configuration: &Value) -> bool {
        serde_json::from_str(self.as_str()).is_ok_and(|object: Value| has(&object, configuration))
    }
}

fn has(object: &Value, configured: &Value) -> bool {
    match (object, configured) {
        (Value::Object(object), Value::Object(configured)) => configured
            .iter()
            .all(|(name, configured)| object.get(name).map_or(configured.is_null(), |value| has(value, configured))),
        (Value::Array(items), Value::Array(configured)) => {
            items.len() == configured.len()
                && items.iter().zip(configured).all(|(item, configured)| has(item, configured))
        }
        (object, configured) => object == configured,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_as_configured_where_it_has_all_that_is_configured() {
        let document = Document::parse(
            r#"{"metadata":{"name":"a","labels":{"x":"1","other":"2"}},
                "spec":{"replicas":2,"none":null,"empty":{},"ports":[{"port":80,"protocol":"TCP"}]}}"#,
        )
        .unwrap();
        for (name, configuration, expected) in [
            ("nothing", json!({}), true),
            ("fields of others beside it", json!({ "metadata": { "labels": { "x": "1" } } }), true),
            ("a field that differs", json!({ "spec": { "replicas": 3 } }), false),
            ("a field of another type", json!({ "spec": { "replicas": "2" } }), false),
            ("a field that is missing", json!({ "spec": { "paused": false } }), false),
            ("a map that is missing", json!({ "status": {} }), false),
            ("a map that is empty", json!({ "spec": { "empty": {} } }), true),
            ("null where nothing is", json!({ "spec": { "paused": null } }), true),
            ("null where null is", json!({ "spec": { "none": null } }), true),
            ("null where a value is", json!({ "spec": { "replicas": null } }), false),
            ("an item with defaults", json!({ "spec": { "ports": [{ "port": 80 }] } }), true),
            ("an item that differs", json!({ "spec": { "ports": [{ "port": 81 }] } }), false),
            ("an item more", json!({ "spec": { "ports": [{ "port": 80 }, { "port": 81 }] } }), false),
            ("an item less", json!({ "spec": { "ports": [] } }), false),
            ("no object at all", json!([]), false),
        ] {
            assert_eq!(document.is_configured(&configuration), expected, "{name}");
        }
    }
}
