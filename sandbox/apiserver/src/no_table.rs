//! The module `table` of a build without the feature `kubectl`: no object is printed.
//!
//! Neither type has a value, so that callers need not know of the feature and the compiler drops what they do with
//! tables.

use std::convert::Infallible;

use jiff::Timestamp;
use serde::ser::{Serialize, Serializer};
use serde_json::Value;

use crate::kinds::Kind;
use crate::status::Status;
use crate::store::stored::Stored;

/// The part of the object in a table row, of which there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IncludeObject(Infallible);

impl IncludeObject {
    /// Returns `None`: a table is an unsupported form, as one of an unknown version is.
    pub(crate) const fn parse(_: Option<&str>) -> Result<Option<Self>, Status> {
        Ok(None)
    }
}

/// Objects as a table, of which there is none.
pub(crate) struct Table(Infallible);

impl Table {
    pub(crate) fn of_list<'a>(
        _: &Kind,
        _: Value,
        _: impl Iterator<Item = &'a Stored>,
        include: IncludeObject,
        _: Timestamp,
    ) -> Self {
        Self(include.0)
    }

    pub(crate) const fn of_object(_: &Kind, _: Option<&str>, _: &Stored, include: IncludeObject, _: Timestamp) -> Self {
        Self(include.0)
    }

    pub(crate) const fn without_definitions(self) -> Self {
        self
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        match self.0 {}
    }
}
