//! The list options of an informer.

use std::fmt;

use kcm_api::{Meta, Selector};

/// The selection of the objects of a resource that are listed and watched; the default is all of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ListOptions {
    /// The namespace.
    pub namespace: Option<String>,
    /// The label selector.
    pub label_selector: Option<Selector>,
    /// The field selector, for example `spec.nodeName=a`.
    pub field_selector: Option<String>,
}

impl ListOptions {
    /// The objects of one namespace.
    #[must_use]
    pub fn namespace(namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..Self::default() }
    }

    /// Whether an object with that metadata certainly matches these options.
    ///
    /// Fields other than name and namespace are not in the metadata: with such a selector no match is certain.
    #[must_use]
    pub fn covers(&self, meta: &Meta) -> bool {
        let namespace = meta.key.namespace();
        self.namespace.as_deref().is_none_or(|wanted| namespace == Some(wanted))
            && self.label_selector.as_ref().is_none_or(|selector| selector.matches(&meta.labels))
            && self.field_selector.as_deref().is_none_or(|fields| fields_match(fields, meta))
    }
}

fn fields_match(fields: &str, meta: &Meta) -> bool {
    fields.split(',').filter(|term| !term.is_empty()).all(|term| {
        let (field, wanted, equal) = if let Some((field, wanted)) = term.split_once("!=") {
            (field, wanted, false)
        } else if let Some((field, wanted)) = term.split_once("==").or_else(|| term.split_once('=')) {
            (field, wanted, true)
        } else {
            return false;
        };
        let value = match field.trim() {
            "metadata.name" => meta.key.name(),
            "metadata.namespace" => meta.key.namespace().unwrap_or_default(),
            _other => return false,
        };
        (value == wanted) == equal
    })
}

impl fmt::Display for ListOptions {
    /// `everything`, or what narrows it: `namespace a, labels app=b, fields metadata.name=c`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.namespace.iter().map(|namespace| format!("namespace {namespace}")));
        parts.extend(self.label_selector.iter().map(|selector| format!("labels {selector}")));
        parts.extend(self.field_selector.iter().map(|fields| format!("fields {fields}")));
        if parts.is_empty() { f.write_str("everything") } else { f.write_str(&parts.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use kcm_api::{PartialObjectMeta, View};

    use super::*;

    fn meta(namespace: &str, name: &str) -> Meta {
        let json = format!(r#"{{"metadata":{{"namespace":"{namespace}","name":"{name}","labels":{{"app":"web"}}}}}}"#);
        PartialObjectMeta::decode(&json).unwrap().metadata
    }

    fn fields(text: &str) -> ListOptions {
        ListOptions { field_selector: Some(text.to_owned()), ..ListOptions::default() }
    }

    fn labels(text: &str) -> ListOptions {
        ListOptions { label_selector: Some(text.parse().unwrap()), ..ListOptions::default() }
    }

    #[test]
    fn covers_what_its_parts_admit() {
        let cases = [
            ("everything", ListOptions::default(), true),
            ("its namespace", ListOptions::namespace("a"), true),
            ("another namespace", ListOptions::namespace("b"), false),
            ("matching labels", labels("app=web"), true),
            ("other labels", labels("app=db"), false),
            ("its name", fields("metadata.name=x"), true),
            ("its name, doubled sign", fields("metadata.name==x"), true),
            ("another name", fields("metadata.name=y"), false),
            ("not another name", fields("metadata.name!=y,metadata.namespace=a"), true),
            ("a field outside metadata is never certain", fields("spec.nodeName=n"), false),
        ];
        for (name, list_options, expected) in cases {
            assert_eq!(list_options.covers(&meta("a", "x")), expected, "{name}: {list_options}");
        }
    }
}
