//! Decodes objects, and as much as possible of an object that cannot be decoded.

use std::panic::catch_unwind;
use std::sync::Arc;

use kcm_api::protobuf::{Field, Message};
use kcm_api::{ObjectKey, PartialObjectMeta, ResourceVersion, Uid, View};
use serde::Deserialize;

use crate::envelope::{Event, Object};
use crate::error_chain::chain;
use crate::panic_message::panic_message;
use crate::undecodable::{Undecodable, UndecodableObject};

/// Decodes an object; else its metadata, else its name.
pub(crate) fn decode<V: View>(object: Object<'_>) -> Result<V, Undecodable> {
    let error = match catch_unwind(|| object.decode::<V>()) {
        Ok(Ok(object)) => return Ok(object),
        Ok(Err(error)) => shortened(chain(&error)),
        Err(panic) => shortened(format!("its decoder panicked: {}", panic_message(&*panic))),
    };
    Err(known_of(object, error))
}

/// Decodes the object of a line again, from the whole line parsed as JSON, after the split object could not be decoded.
pub(crate) fn decode_otherwise<V: View>(
    line: &[u8],
    split: Event<'_>,
    undecodable: Undecodable,
) -> Result<V, Undecodable> {
    match Event::parse(line) {
        // The line has more than the usual two fields.
        Ok(parsed) if parsed != split => decode(parsed.object),
        Ok(_) => Err(undecodable),
        Err(error) => Err(Undecodable::Nameless(shortened(chain(&error)))),
    }
}

/// The number of characters of an error that are kept: an error quotes the value that it is about.
const LONGEST_ERROR: usize = 200;

/// Cuts an error after 200 characters.
pub(crate) fn shortened(mut error: String) -> String {
    if let Some((end, _)) = error.char_indices().nth(LONGEST_ERROR) {
        error.truncate(end);
        error.push('…');
    }
    error
}

fn known_of(object: Object<'_>, error: String) -> Undecodable {
    let known = match object.decode::<PartialObjectMeta>() {
        Ok(PartialObjectMeta { metadata: meta }) => {
            let (key, uid, resource_version) = (meta.key.clone(), meta.uid.clone(), meta.resource_version.clone());
            UndecodableObject { key, uid, resource_version, meta: Some(meta), error }
        }
        Err(_) => match Named::read(object) {
            Ok(Named { metadata: NamedMeta { namespace, name, uid, resource_version } }) => {
                let key = match namespace.filter(|namespace| !namespace.is_empty()) {
                    Some(namespace) => ObjectKey::namespaced(&*namespace, name),
                    None => ObjectKey::cluster_scoped(name),
                };
                UndecodableObject { key, uid, resource_version, meta: None, error }
            }
            Err(_) => return Undecodable::Nameless(error),
        },
    };
    if known.key.name().is_empty() { Undecodable::Nameless(known.error) } else { Undecodable::Named(Arc::new(known)) }
}

/// The name of an object, whatever else it has.
#[derive(Deserialize)]
struct Named {
    metadata: NamedMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NamedMeta {
    #[serde(default)]
    namespace: Option<String>,
    name: String,
    #[serde(default)]
    uid: Uid,
    #[serde(default)]
    resource_version: ResourceVersion,
}

impl Named {
    fn read(object: Object<'_>) -> Result<Self, serde_json::Error> {
        const NAMED: &Message = &[Field::one(
            1,
            "metadata",
            &[
                Field::text(1, "name"),
                Field::text(3, "namespace"),
                Field::text(5, "uid"),
                Field::text(6, "resourceVersion"),
            ],
        )];
        object.read(NAMED)
    }
}

#[cfg(test)]
mod tests {
    use kcm_api::{DecodeError, Meta};

    use super::*;

    struct Refused(Meta);

    impl View for Refused {
        fn decode(json: &str) -> Result<Self, DecodeError> {
            assert!(!json.contains("panic"), "as the test wants it");
            serde_json::from_str::<u8>(json)?;
            unreachable!("an object is no number")
        }

        fn meta(&self) -> &Meta {
            &self.0
        }
    }

    fn undecodable(json: &str) -> Undecodable {
        decode::<Refused>(Object::Json(json)).err().unwrap()
    }

    #[test]
    fn an_error_is_cut_on_a_character() {
        assert_eq!(shortened("ä".repeat(200)), "ä".repeat(200));
        assert_eq!(shortened("ä".repeat(201)), "ä".repeat(200) + "…");
    }

    #[test]
    fn as_much_is_known_as_can_be_decoded() {
        let rows = [
            (
                r#"{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7","labels":{"a":"b"}}}"#,
                "n/a 7 true",
            ),
            (r#"{"metadata":{"name":"a","resourceVersion":"7"},"panic":1}"#, "a 7 true"),
            (r#"{"metadata":{"name":"a","namespace":"n","resourceVersion":"7","labels":5}}"#, "n/a 7 false"),
            (r#"{"metadata":{"name":"a","creationTimestamp":"yesterday"}}"#, "a  false"),
            (r#"{"metadata":{"name":""}}"#, "nameless"),
            (r#"{"metadata":{"name":7}}"#, "nameless"),
            (r#"{"metadata":[]}"#, "nameless"),
            ("[]", "nameless"),
        ];
        for (json, expected) in rows {
            let known = match undecodable(json) {
                Undecodable::Named(object) => {
                    format!("{} {} {}", object.key, object.resource_version, object.meta.is_some())
                }
                Undecodable::Nameless(_) => "nameless".to_owned(),
            };
            assert_eq!(known, expected, "{json}");
        }
    }
}
