//! Priority classes, and devices and claims to them.

use super::column::{AGE, NAME, Row, boolean, integer, text};
use super::{Columns, NAMED, PLAIN};

pub(super) fn of(plural: &str) -> Columns {
    match plural {
        "priorityclasses" => PRIORITY_CLASSES,
        "deviceclasses" | "resourceclaimtemplates" => NAMED,
        "resourceclaims" => RESOURCE_CLAIMS,
        "resourceslices" => RESOURCE_SLICES,
        _ => PLAIN,
    }
}

const PRIORITY_CLASSES: Columns = &[
    NAME,
    integer("Value", "The priority.", |row| row.number("/value")),
    boolean("Global-Default", "Whether pods without a class have it.", |row| row.flag("/globalDefault").into()),
    AGE,
    text("PreemptionPolicy", "Whether lower pods make room.", |row| row.text("/preemptionPolicy")),
];

const RESOURCE_CLAIMS: Columns =
    &[NAME, text("State", "Whether the claim is met, and in use.", |row| claim_state(row).into()), AGE];

const RESOURCE_SLICES: Columns = &[
    NAME,
    text("Node", "The node of the devices.", |row| row.text("/spec/nodeName")),
    text("Driver", "The driver of the devices.", |row| row.text("/spec/driver")),
    text("Pool", "The pool of the devices.", |row| row.text("/spec/pool/name")),
    AGE,
];

fn claim_state(row: &Row<'_>) -> &'static str {
    let is_reserved = !row.list("/status/reservedFor").is_empty();
    match (row.is_terminating(), row.at("/status/allocation").is_some(), is_reserved) {
        (false, false, _) => "pending",
        (false, true, false) => "allocated",
        (false, true, true) => "allocated,reserved",
        (true, false, _) => "deleted",
        (true, true, false) => "deleted,allocated",
        (true, true, true) => "deleted,allocated,reserved",
    }
}
