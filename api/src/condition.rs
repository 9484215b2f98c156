//! Conditions of an object's status.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::decode::null_as_default;
use crate::{Document, EditError, InternedStr, time};

/// One condition of a status.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What the condition is about, for example `ReplicaFailure`.
    #[serde(rename = "type", default, deserialize_with = "null_as_default")]
    pub type_: InternedStr,
    /// Whether it holds.
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: ConditionStatus,
    /// When something about it was last written; only some kinds have it.
    #[serde(default, with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Timestamp>,
    /// When the status last changed.
    #[serde(default, with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
    /// Why, in one word for programs.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "str::is_empty")]
    pub reason: InternedStr,
    /// Why, for people.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "str::is_empty")]
    pub message: Box<str>,
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody knows; any text that is neither `True` nor `False` is read as this.
    #[default]
    #[serde(other)]
    Unknown,
}

/// Where every kind of the API keeps its conditions.
const CONDITIONS: [&str; 2] = ["status", "conditions"];

impl Document {
    /// Puts a condition at the end of `status.conditions`, in the place of any of its type.
    ///
    /// The others stay as they are, byte for byte. Whether a condition is worth writing is for the controller to say.
    pub fn put_condition(&mut self, condition: &Condition) -> Result<(), EditError> {
        let path = || CONDITIONS.join(".");
        let made =
            serde_json::value::to_raw_value(condition).map_err(|source| EditError::Value { path: path(), source })?;
        let mut conditions = self.conditions_but(&condition.type_)?;
        conditions.push(&made);
        let conditions =
            serde_json::value::to_raw_value(&conditions).map_err(|source| EditError::Value { path: path(), source })?;
        self.set(&CONDITIONS, &conditions)
    }

    /// Takes every condition of that type out of `status.conditions`, and the list too where none is left.
    pub fn remove_condition(&mut self, type_: &str) -> Result<(), EditError> {
        let conditions = self.conditions_but(type_)?;
        if conditions.is_empty() {
            return self.remove(&CONDITIONS);
        }
        let conditions = serde_json::value::to_raw_value(&conditions)
            .map_err(|source| EditError::Value { path: CONDITIONS.join("."), source })?;
        self.set(&CONDITIONS, &conditions)
    }

    fn conditions_but(&self, type_: &str) -> Result<Vec<&serde_json::value::RawValue>, EditError> {
        #[derive(Deserialize)]
        struct Typed {
            #[serde(rename = "type", default)]
            type_: Option<InternedStr>,
        }
        let mut conditions = self.items(&CONDITIONS)?;
        // What is no condition at all is not ours to drop.
        conditions.retain(|condition| {
            serde_json::from_str::<Typed>(condition.get()).ok().and_then(|typed| typed.type_).as_deref() != Some(type_)
        });
        Ok(conditions)
    }
}
