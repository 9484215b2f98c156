//! The list options of an informer.

use std::fmt;

use kcm_api::{Meta, ObjectKey, Selector};

/// The selection of the objects of a resource that are listed and watched; the default is all of them.
///
/// The API lists one namespace or all; several namespaces need one informer each, which a
/// [`MultiNamespaceInformer`](crate::MultiNamespaceInformer) reads as one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ListOptions {
    /// Name of the namespace; `None` for all namespaces.
    pub namespace: Option<String>,
    /// The label selector; `None` for all objects.
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

    /// Returns `true` if these options select objects of the namespace of that key.
    #[must_use]
    pub fn cover_namespace_of(&self, key: &ObjectKey) -> bool {
        self.namespace.as_deref().is_none_or(|wanted| key.namespace() == Some(wanted))
    }

    /// Returns `true` if no object matches both, because they select different namespaces.
    pub(crate) fn are_of_another_namespace_than(&self, others: &Self) -> bool {
        matches!((&self.namespace, &others.namespace), (Some(one), Some(other)) if one != other)
    }

    /// Returns `true` if an object with that metadata matches these options. `None` if the metadata do not decide that,
    /// for example if a field selector has other fields than name and namespace.
    #[must_use]
    pub fn covers(&self, meta: &Meta) -> Option<bool> {
        let decided = self.cover_namespace_of(&meta.key)
            && self.label_selector.as_ref().is_none_or(|selector| selector.matches(&meta.labels));
        let fields = self.field_selector.as_deref().map_or(Some(true), |fields| fields_match(fields, meta));
        if decided { fields } else { Some(false) }
    }

    /// Returns `true` if every object that matches `others` certainly matches these options, and metadata decide which
    /// objects of these options match `others`.
    pub(crate) fn include(&self, others: &Self) -> bool {
        fn is_wider<T: PartialEq>(wider: Option<&T>, narrower: Option<&T>) -> bool {
            wider.is_none() || wider == narrower
        }
        let decides =
            others.field_selector.as_deref().is_none_or(|fields| field_terms(fields).all(|term| term.is_some()));
        self == others
            || decides
                && is_wider(self.namespace.as_ref(), others.namespace.as_ref())
                && is_wider(self.label_selector.as_ref(), others.label_selector.as_ref())
                && is_wider(self.field_selector.as_ref(), others.field_selector.as_ref())
    }
}

/// A term of a field selector on the metadata.
struct FieldTerm<'a> {
    field: MetadataField,
    wanted: &'a str,
    is_equal: bool,
}

enum MetadataField {
    Name,
    Namespace,
}

/// The terms of a field selector; `None` for terms on fields that are not in the metadata.
fn field_terms(fields: &str) -> impl Iterator<Item = Option<FieldTerm<'_>>> {
    fields.split(',').filter(|term| !term.is_empty()).map(|term| {
        let (field, wanted, is_equal) = if let Some((field, wanted)) = term.split_once("!=") {
            (field, wanted, false)
        } else {
            let (field, wanted) = term.split_once("==").or_else(|| term.split_once('='))?;
            (field, wanted, true)
        };
        let field = match field.trim() {
            "metadata.name" => MetadataField::Name,
            "metadata.namespace" => MetadataField::Namespace,
            _other => return None,
        };
        Some(FieldTerm { field, wanted, is_equal })
    })
}

fn fields_match(fields: &str, meta: &Meta) -> Option<bool> {
    let mut all = Some(true);
    for term in field_terms(fields) {
        let is_match = term.map(|FieldTerm { field, wanted, is_equal }| {
            let value = match field {
                MetadataField::Name => meta.key.name(),
                MetadataField::Namespace => meta.key.namespace().unwrap_or_default(),
            };
            (value == wanted) == is_equal
        });
        match is_match {
            // One term that does not match decides.
            Some(false) => return Some(false),
            Some(true) => {}
            None => all = None,
        }
    }
    all
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
            ("everything", ListOptions::default(), Some(true)),
            ("its namespace", ListOptions::namespace("a"), Some(true)),
            ("another namespace", ListOptions::namespace("b"), Some(false)),
            ("matching labels", labels("app=web"), Some(true)),
            ("other labels", labels("app=db"), Some(false)),
            ("its name", fields("metadata.name=x"), Some(true)),
            ("its name, doubled sign", fields("metadata.name==x"), Some(true)),
            ("another name", fields("metadata.name=y"), Some(false)),
            ("not another name", fields("metadata.name!=y,metadata.namespace=a"), Some(true)),
            ("a field outside metadata is not decided", fields("spec.nodeName=n,metadata.name=x"), None),
            ("one field that does not match decides", fields("spec.nodeName=n,metadata.name=y"), Some(false)),
            (
                "labels decide",
                ListOptions { field_selector: fields("spec.nodeName=n").field_selector, ..labels("app=db") },
                Some(false),
            ),
        ];
        for (name, list_options, expected) in cases {
            assert_eq!(list_options.covers(&meta("a", "x")), expected, "{name}: {list_options}");
        }
    }

    #[test]
    fn includes_options_that_are_narrower_in_what_metadata_decide() {
        let everything = ListOptions::default;
        let rows = [
            (everything(), everything(), true),
            (everything(), ListOptions::namespace("a"), true),
            (everything(), labels("app=web"), true),
            (everything(), fields("metadata.name=x"), true),
            (everything(), fields("spec.nodeName=n"), false),
            (fields("spec.nodeName=n"), fields("spec.nodeName=n"), true),
            (ListOptions::namespace("a"), everything(), false),
            (ListOptions::namespace("a"), ListOptions::namespace("b"), false),
            (labels("app=web"), ListOptions { namespace: Some("a".to_owned()), ..labels("app=web") }, true),
            (labels("app=web"), labels("app in (web,db)"), false),
        ];
        for (wider, narrower, expected) in rows {
            assert_eq!(wider.include(&narrower), expected, "{wider} and {narrower}");
        }
    }
}
