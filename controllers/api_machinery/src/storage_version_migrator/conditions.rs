//! Conditions of a migration, in its JSON.

use jiff::Timestamp;
use kcm_framework::api::{Document, EditError};
use serde_json::{Map, Value, json};

const PATH: [&str; 2] = ["status", "conditions"];

/// A condition to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition<'a> {
    pub(super) type_: &'a str,
    pub(super) status: bool,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
    /// The generation that the condition is about; 0 for none.
    pub(super) observed_generation: i64,
}

/// The time of a condition: whole seconds, as the API has them.
pub(super) fn seconds(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

fn read(document: &Document) -> Result<Vec<Map<String, Value>>, EditError> {
    let Some(text) = document.get(&PATH) else { return Ok(Vec::new()) };
    let conditions: Option<Vec<Map<String, Value>>> =
        serde_json::from_str(text).map_err(|_| EditError::NotAList { path: PATH.join(".") })?;
    Ok(conditions.unwrap_or_default())
}

fn is_of(condition: &Map<String, Value>, type_: &str) -> bool {
    condition.get("type").is_some_and(|found| found == type_)
}

/// Appends a condition, unless one of its type is true or false.
///
/// # Upstream
/// `setStatusConditions` of the package.
pub(super) fn add_once(document: &mut Document, condition: &Condition<'_>, now: Timestamp) -> Result<bool, EditError> {
    let mut conditions = read(document)?;
    let is_decided = |found: &Map<String, Value>| {
        is_of(found, condition.type_) && found.get("status").is_some_and(|status| status == "True" || status == "False")
    };
    if conditions.iter().any(is_decided) {
        return Ok(false);
    }
    conditions.push(condition.to_json(seconds(now)));
    document.set(&PATH, &conditions)?;
    Ok(true)
}

/// Sets a condition. Its time changes with its status only. Returns `true` if anything changes.
///
/// # Upstream
/// `SetStatusCondition` of `apimachinery/pkg/api/meta`.
pub(super) fn set(document: &mut Document, condition: &Condition<'_>, now: Timestamp) -> Result<bool, EditError> {
    let mut conditions = read(document)?;
    let new = condition.to_json(seconds(now));
    let Some(found) = conditions.iter_mut().find(|found| is_of(found, condition.type_)) else {
        conditions.push(new);
        document.set(&PATH, &conditions)?;
        return Ok(true);
    };
    let mut changed = found.clone();
    changed.extend(["status", "reason", "message"].map(|field| (field.to_owned(), new[field].clone())));
    match new.get("observedGeneration") {
        Some(generation) => drop(changed.insert("observedGeneration".to_owned(), generation.clone())),
        None => drop(changed.remove("observedGeneration")),
    }
    if changed.get("status") != found.get("status") {
        changed.insert("lastTransitionTime".to_owned(), new["lastTransitionTime"].clone());
    }
    if changed == *found {
        return Ok(false);
    }
    *found = changed;
    document.set(&PATH, &conditions)?;
    Ok(true)
}

impl Condition<'_> {
    fn to_json(&self, now: Timestamp) -> Map<String, Value> {
        let mut fields = Map::from_iter([
            ("type".to_owned(), json!(self.type_)),
            ("status".to_owned(), json!(if self.status { "True" } else { "False" })),
            ("lastTransitionTime".to_owned(), json!(now)),
            ("reason".to_owned(), json!(self.reason)),
            ("message".to_owned(), json!(self.message)),
        ]);
        if self.observed_generation != 0 {
            fields.insert("observedGeneration".to_owned(), json!(self.observed_generation));
        }
        fields
    }
}
