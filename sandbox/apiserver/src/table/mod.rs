//! Objects printed by the server: answers to `as=Table`, as `kubectl get` asks for them.
//!
//! A resource has [`Columns`], each with a function from an object and the time to a cell. All of them are pure, and
//! a list is printed row by row while it is written, so that a table holds no copy of what it shows.
//!
//! ```text
//! Accept ──▶ Form::Table ──▶ Columns::of(kind) ──▶ Table { columns, rows: (cells, object) }
//! ```
//!
//! # Upstream
//! `pkg/printers/internalversion/printers.go` for the columns, `apiserver/pkg/endpoints/handlers/response.go` for the
//! form. Descriptions of columns are our own; IP addresses have no third cell without a column; the parameter selector
//! of admission policy bindings is printed as other selectors are; flow schemas are in order of names.

mod access;
mod answer;
mod autoscaling;
mod batch;
mod cluster;
mod column;
mod defined;
mod duration;
mod events;
mod extension;
mod network;
mod phrase;
mod pods;
#[cfg(test)]
mod recorded;
mod scheduling;
mod storage;
mod workloads;

pub(crate) use answer::Table;
use column::{AGE, CREATED_AT, Column, NAME, date, text};

use crate::kinds::Kind;

/// The columns that a kind is printed in.
pub(crate) type Columns = &'static [Column];

/// Built-in kinds without columns of their own.
const PLAIN: Columns = &[NAME, CREATED_AT];

/// Custom kinds, whose definitions name no columns.
const CUSTOM: Columns = &[NAME, date("Age", "When the object was made.", column::age_or_null)];

/// Kinds of which only name and age are worth a column.
const NAMED: Columns = &[NAME, AGE];

/// The scale subresource, which is printed by itself.
const SCALE: Columns = &[
    text("Name", "Name of the scaled object.", column::name),
    column::integer("Desired", "Replicas wanted.", |row| row.number("/spec/replicas")),
    column::integer("Available", "Replicas observed.", |row| row.number("/status/replicas")),
    AGE,
];

/// Finds the columns of a resource, or of its subresource.
pub(crate) fn columns_of(kind: &Kind, subresource: Option<&str>) -> Columns {
    if subresource == Some("scale") {
        return SCALE;
    }
    if kind.is_custom() {
        return CUSTOM;
    }
    let plural: &str = &kind.resource.plural;
    match &*kind.resource.group {
        "" => core(plural),
        "apps" => workloads::of(plural),
        "batch" => batch::of(plural),
        "autoscaling" => autoscaling::HORIZONTAL_POD_AUTOSCALERS,
        "policy" => workloads::POD_DISRUPTION_BUDGETS,
        "networking.k8s.io" | "discovery.k8s.io" => network::of(plural),
        "storage.k8s.io" => storage::of(plural),
        "rbac.authorization.k8s.io" | "certificates.k8s.io" => access::of(plural),
        "coordination.k8s.io" | "node.k8s.io" | "flowcontrol.apiserver.k8s.io" => cluster::of(plural),
        "scheduling.k8s.io" | "resource.k8s.io" => scheduling::of(plural),
        "admissionregistration.k8s.io" | "apiregistration.k8s.io" => extension::of(plural),
        "events.k8s.io" => events::EVENTS,
        _ => PLAIN,
    }
}

fn core(plural: &str) -> Columns {
    match plural {
        "pods" => pods::PODS,
        "podtemplates" => pods::POD_TEMPLATES,
        "replicationcontrollers" => workloads::REPLICATION_CONTROLLERS,
        "services" => network::SERVICES,
        "endpoints" => network::ENDPOINTS,
        "events" => events::EVENTS,
        "persistentvolumes" | "persistentvolumeclaims" => storage::of(plural),
        "serviceaccounts" => NAMED,
        _ => cluster::of(plural),
    }
}
