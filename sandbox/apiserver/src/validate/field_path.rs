//! Values within an object with their field paths, which errors name.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::status::FieldError;

/// The problems found in an object.
pub(super) type Errors = Vec<FieldError>;

static ABSENT: Value = Value::Null;

/// A value within an object, present or absent, and its path. The path is formatted only for an error.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldPath<'v, 'p> {
    pub(super) value: &'v Value,
    parent: Option<&'p Self>,
    step: Step<'p>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    /// One field, or several with dots between them.
    Field(&'a str),
    Index(usize),
    Key(&'a str),
}

impl fmt::Display for FieldPath<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) => write!(f, "[{key}]"),
            Step::Field("") => Ok(()),
            Step::Field(field) => {
                let is_first = self.parent.is_none_or(|parent| matches!(parent.step, Step::Field("")));
                if is_first { f.write_str(field) } else { write!(f, ".{field}") }
            }
        }
    }
}

impl<'v> FieldPath<'v, '_> {
    pub(super) const fn root(value: &'v Value) -> Self {
        Self { value, parent: None, step: Step::Field("") }
    }

    /// A field, or one further down with dots between the names.
    pub(super) fn get<'q>(&'q self, path: &'q str) -> FieldPath<'v, 'q> {
        let value = path.split('.').try_fold(self.value, |value, field| value.get(field)).unwrap_or(&ABSENT);
        FieldPath { value, parent: Some(self), step: Step::Field(path) }
    }

    /// An entry of a map, as paths show them.
    pub(super) fn key<'q>(&'q self, key: &'q str) -> FieldPath<'v, 'q> {
        FieldPath { value: self.value.get(key).unwrap_or(&ABSENT), parent: Some(self), step: Step::Key(key) }
    }

    /// The same value under another path, for errors that upstream reports there.
    pub(super) const fn named<'q>(&'q self, path: &'q str) -> FieldPath<'v, 'q> {
        FieldPath { value: self.value, parent: Some(self), step: Step::Field(path) }
    }

    /// The same path with another value.
    pub(super) const fn holding(self, value: &'v Value) -> Self {
        Self { value, ..self }
    }

    pub(super) const fn index<'q>(&'q self, index: usize, value: &'v Value) -> FieldPath<'v, 'q> {
        FieldPath { value, parent: Some(self), step: Step::Index(index) }
    }

    pub(super) fn items<'q>(&'q self) -> impl Iterator<Item = FieldPath<'v, 'q>> {
        self.list().iter().enumerate().map(|(index, value)| self.index(index, value))
    }

    pub(super) fn list(&self) -> &'v [Value] {
        self.value.as_array().map_or(&[], Vec::as_slice)
    }

    /// The entries of a map, by key.
    pub(super) fn entries<'q>(&'q self) -> impl Iterator<Item = (&'v str, FieldPath<'v, 'q>)>
    where
        'v: 'q,
    {
        self.value
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.as_str(), FieldPath { value, parent: Some(self), step: Step::Key(key) }))
    }

    pub(super) fn is_absent(&self) -> bool {
        self.value.is_null()
    }

    pub(super) fn is_given(&self) -> bool {
        !self.value.is_null()
    }

    /// Absent, or an empty string, list or map.
    pub(super) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Returns the string, or an empty string.
    pub(super) fn text(&self) -> &'v str {
        self.value.as_str().unwrap_or_default()
    }

    pub(super) fn number(&self) -> Option<i64> {
        self.value.as_i64()
    }

    pub(super) fn is_true(&self) -> bool {
        *self.value == Value::Bool(true)
    }

    pub(super) fn required(&self, detail: &str) -> FieldError {
        FieldError::required(self.to_string(), detail)
    }

    pub(super) fn forbidden(&self, detail: &str) -> FieldError {
        FieldError::forbidden(self.to_string(), detail)
    }

    pub(super) fn duplicate(&self) -> FieldError {
        FieldError::duplicate(self.to_string(), self.value.clone())
    }

    pub(super) fn not_found(&self) -> FieldError {
        FieldError::not_found(self.to_string(), self.text())
    }

    pub(super) fn unsupported(&self, supported: &[&str]) -> FieldError {
        FieldError::not_supported(self.to_string(), self.value.clone(), supported)
    }

    /// The value is invalid.
    pub(super) fn invalid(&self, detail: impl Into<String>) -> FieldError {
        FieldError::invalid(self.to_string(), self.value.clone(), detail)
    }

    /// `value` is invalid at this path.
    pub(super) fn refused(&self, value: impl Into<Value>, detail: impl Into<String>) -> FieldError {
        FieldError::invalid(self.to_string(), value, detail)
    }

    /// The value is invalid; the error prints `text` for it.
    pub(super) fn shown(&self, text: impl Into<String>, detail: impl Into<String>) -> FieldError {
        FieldError::invalid_shown(self.to_string(), text, detail)
    }

    /// Refuses an absent or empty value.
    pub(super) fn must_be_set(&self, detail: &str, errors: &mut Errors) {
        if self.is_empty() {
            errors.push(self.required(detail));
        }
    }

    /// Refuses absent or empty fields.
    pub(super) fn must_have(&self, fields: &[&str], errors: &mut Errors) {
        for field in fields {
            self.get(field).must_be_set("", errors);
        }
    }

    /// Refuses an empty string, and a string that is not in `known`.
    pub(super) fn must_be_one_of(&self, known: &[&str], errors: &mut Errors) {
        self.must_be_set("", errors);
        if !self.is_empty() {
            self.one_of(known, errors);
        }
    }

    /// Refuses numbers below 0 in these fields.
    pub(super) fn none_negative(&self, fields: &[&str], errors: &mut Errors) {
        for field in fields {
            self.get(field).not_negative(errors);
        }
    }

    /// Refuses an absent value.
    pub(super) fn must_be_given(&self, detail: &str, errors: &mut Errors) {
        if self.is_absent() {
            errors.push(self.required(detail));
        }
    }

    /// Refuses a string that is among those before it, and adds it to them.
    pub(super) fn must_be_new(&self, known: &mut BTreeSet<&'v str>, errors: &mut Errors) {
        if !known.insert(self.text()) {
            errors.push(self.duplicate());
        }
    }

    pub(super) fn refuse_number(&self, is_refused: impl Fn(i64) -> bool, detail: &str, errors: &mut Errors) {
        if self.number().is_some_and(is_refused) {
            errors.push(self.invalid(detail));
        }
    }

    /// Refuses numbers below 0.
    pub(super) fn not_negative(&self, errors: &mut Errors) {
        self.refuse_number(|number| number < 0, NOT_NEGATIVE, errors);
    }

    /// Refuses strings that are not in `known`, which must list the empty string to allow it.
    pub(super) fn one_of(&self, known: &[&str], errors: &mut Errors) {
        if self.is_given() && !known.contains(&self.text()) {
            errors.push(self.unsupported(known));
        }
    }
}

pub(super) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
pub(super) const IMMUTABLE: &str = "field is immutable";

/// Refuses a change of `path`, as kinds do whose rules are declared with their types: the message shows no value.
pub(super) fn declared_immutable(old: &Value, new: &Value, path: &str, errors: &mut Errors) {
    let (old, new) = (FieldPath::root(old), FieldPath::root(new));
    if old.get(path).value != new.get(path).value {
        errors.push(FieldError::invalid(path, Value::Null, IMMUTABLE));
    }
}

/// Refuses a change of `path`.
pub(super) fn immutable(old: &Value, new: &Value, path: &str, errors: &mut Errors) {
    let (old, new) = (FieldPath::root(old), FieldPath::root(new));
    let (before, after) = (old.get(path), new.get(path));
    if before.value != after.value {
        errors.push(after.shown(super::go_format::json(after.value), IMMUTABLE));
    }
}
