//! Objects printed by the server: responses to `as=Table`, which `kubectl get` requests.
//!
//! The columns of a resource are rows of `data/columns.txt`, each with a formatting: a pure function from an object and
//! the time to a cell. A list is printed row by row while it is written, so that a table holds no copy of its objects.
//!
//! ```text
//! Accept ──▶ Form::Table ──▶ columns::of(kind) ──▶ Table { columns, rows: (cells, object) }
//! ```
//!
//! # Upstream
//! `pkg/printers/internalversion/printers.go` for the columns, `apiserver/pkg/endpoints/handlers/response.go` for the
//! form. Descriptions of columns are our own; IP addresses have no third cell without a column; the parameter selector
//! of admission policy bindings is printed as other selectors are; flow schemas are in order of names.

mod answer;
mod autoscaling;
mod cluster;
mod columns;
mod defined;
mod duration;
mod events;
mod extension;
mod formatting;
mod include;
mod network;
mod phrase;
mod pods;
mod row;
#[cfg(test)]
mod tests;
mod workloads;

pub(crate) use answer::Table;
pub(crate) use include::IncludeObject;
