//! Conditions of an object's status.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::decode::null_as_default;
use crate::document::{Document, EditError};
use crate::intern::InternedStr;
use crate::time;

/// One condition of a status.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The type, for example `ReplicaFailure`.
    #[serde(rename = "type", default, deserialize_with = "null_as_default")]
    pub type_: InternedStr,
    /// Status of the condition: true, false or unknown.
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: ConditionStatus,
    /// The generation that the condition was computed from, 0 if it is not set. Only some kinds have it.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Time of the last update; only some kinds have it.
    #[serde(default, with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Timestamp>,
    /// Time at which the status last changed.
    #[serde(default, with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
    /// Machine-readable reason in one CamelCase word.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "str::is_empty")]
    pub reason: InternedStr,
    /// Human-readable message with the details.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "str::is_empty")]
    pub message: Box<str>,
}

impl Condition {
    /// Returns the condition as it is written at `now`. It keeps the transition time of the condition of its type in
    /// `present` if the status is the same.
    ///
    /// # Upstream
    /// `meta.SetStatusCondition`.
    #[must_use]
    pub fn in_transition(mut self, present: &[Self], now: Timestamp) -> Self {
        let same_status = present.iter().find(|one| one.type_ == self.type_).filter(|one| one.status == self.status);
        self.last_transition_time = Some(same_status.and_then(|one| one.last_transition_time).unwrap_or(now));
        self
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// Status of a condition: true, false or unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// The condition is true.
    True,
    /// It does not hold.
    False,
    /// It is unknown whether it holds; any string other than `True` and `False` is read as this.
    #[default]
    #[serde(other)]
    Unknown,
}

/// The path of conditions.
const CONDITIONS: [&str; 2] = ["status", "conditions"];

impl Document {
    /// Sets a condition: removes the conditions of its type from `status.conditions` and appends it.
    ///
    /// Other conditions are unchanged, byte for byte. The controller decides whether to write a condition.
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

    /// Replaces the first condition of the same type, or appends the condition.
    ///
    /// Other conditions are unchanged, byte for byte.
    ///
    /// # Upstream
    /// `meta.SetStatusCondition`, which keeps the order of conditions.
    pub fn replace_condition(&mut self, condition: &Condition) -> Result<(), EditError> {
        let path = || CONDITIONS.join(".");
        let made =
            serde_json::value::to_raw_value(condition).map_err(|source| EditError::Value { path: path(), source })?;
        let mut conditions = self.items(&CONDITIONS)?;
        match conditions.iter().position(|present| is_of_type(present, &condition.type_)) {
            Some(at) => conditions[at] = &made,
            None => conditions.push(&made),
        }
        let conditions =
            serde_json::value::to_raw_value(&conditions).map_err(|source| EditError::Value { path: path(), source })?;
        self.set(&CONDITIONS, &conditions)
    }

    /// Removes every condition of that type from `status.conditions`, and removes the list if it becomes empty.
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
        let mut conditions = self.items(&CONDITIONS)?;
        // Invalid conditions are kept.
        conditions.retain(|condition| !is_of_type(condition, type_));
        Ok(conditions)
    }
}

fn is_of_type(condition: &serde_json::value::RawValue, type_: &str) -> bool {
    #[derive(Deserialize)]
    struct Typed {
        #[serde(rename = "type", default)]
        type_: Option<InternedStr>,
    }
    serde_json::from_str::<Typed>(condition.get()).ok().and_then(|typed| typed.type_).as_deref() == Some(type_)
}
