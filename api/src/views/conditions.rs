//! Conditions of pods, nodes and Jobs, reduced to the facts that decisions need.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Deserialize;

use crate::decode::text;
use crate::protobuf::{Field, Kind};

/// A condition as pods, nodes and jobs have it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawCondition<'a> {
    #[serde(rename = "type", borrow, default, deserialize_with = "text")]
    type_: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    status: Option<Cow<'a, str>>,
    // Parsed for the one condition that is kept.
    #[serde(borrow, default, deserialize_with = "text")]
    last_transition_time: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    reason: Option<Cow<'a, str>>,
}

impl RawCondition<'_> {
    /// A list of conditions in protobuf.
    pub(super) const LIST: Kind = Kind::List(&Kind::One(&[
        Field::text(1, "type"),
        Field::text(2, "status"),
        Field::time(4, "lastTransitionTime"),
        Field::text(5, "reason"),
    ]));

    pub(super) fn is_of_type(&self, type_: &str) -> bool {
        self.type_.as_deref() == Some(type_)
    }

    pub(super) fn is_true(&self) -> bool {
        self.status.as_deref() == Some("True")
    }

    pub(super) fn is_false(&self) -> bool {
        self.status.as_deref() == Some("False")
    }

    pub(super) fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or_default()
    }

    /// Returns the time at which the status last changed. An invalid time counts as unset, so that it does not hide the
    /// object.
    pub(super) fn since(&self) -> Option<Timestamp> {
        self.last_transition_time.as_deref().and_then(|time| time.parse().ok())
    }
}
