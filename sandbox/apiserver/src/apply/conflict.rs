//! The conflict error of an apply.
//!
//! # Upstream
//! `apimachinery/pkg/util/managedfields/internal/conflict.go`

use std::fmt::Write as _;

use super::applied::Conflicts;
use super::element;
use crate::status::Status;

/// Maximum bytes of paths in the message: paths share prefixes, so their total size is otherwise unbounded.
const MOST_BYTES: usize = 1024 * 1024;

pub(crate) fn refuse(conflicts: &Conflicts) -> Status {
    let paths: Vec<_> = conflicts
        .iter()
        .flat_map(|(manager, fields)| fields.paths().into_iter().map(move |path| (manager, path)))
        .collect();
    let count = paths.len();
    let mut bytes = 0;
    let fields = paths.into_iter().map(|(manager, path)| (manager, element::display(&path))).take_while(|(_, path)| {
        let is_told = bytes < MOST_BYTES;
        bytes += path.len();
        is_told
    });
    let fields: Vec<_> = fields.collect();
    let message = if let [(manager, path)] = fields.as_slice() {
        format!("Apply failed with 1 conflict: conflict with {manager}: {path}")
    } else {
        let mut text = format!("Apply failed with {count} conflicts: ");
        let mut last = None;
        for (manager, path) in &fields {
            if last != Some(*manager) {
                let separator = if last.is_some() { "\n" } else { "" };
                write!(text, "{separator}conflicts with {manager}:").expect("a string takes any text");
                last = Some(*manager);
            }
            write!(text, "\n- {path}").expect("a string takes any text");
        }
        text
    };
    fields.iter().fold(Status::new(409, "Conflict", message), |status, (manager, path)| {
        status.with_cause("FieldManagerConflict", format!("conflict with {manager}"), path)
    })
}
