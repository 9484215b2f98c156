//! Rules for all built-in controllers.

mod lookups;
