//! Rules that hold for every history of the controllers, under every schedule.
//!
//! Each is a plain function in the folder of its controller, with a history that it accepts and a history that it refuses. Bounds
//! come from the object that the reconcile has seen, and counts from the store.

pub(crate) mod every_loop;
pub(crate) mod replicas;

pub(crate) use kcm_simulation::rules::{
    Held, Story, check, controlled, controller, count, find, has_condition, has_ended, holds, holds_at_rest, is_active,
    is_controlled_by, is_ready, is_terminating, items, key_of, name, number, of, seen_owner, text, uid, writes_of,
};
