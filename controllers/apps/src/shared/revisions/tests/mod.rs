//! Data, hashes and order of revisions.

mod data;
mod defaults;
mod history;
mod requests;

use serde_json::value::RawValue;

use super::RevisionData;

fn raw(json: &str) -> &RawValue {
    serde_json::from_str(json).expect("the case must be JSON")
}

fn data(template: &str) -> RevisionData {
    RevisionData::of(Some(raw(template))).expect("the template must be an object")
}
