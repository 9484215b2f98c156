//! Tests of the decisions, beside what upstream's type checker says of the same policies.

mod apply;
mod faults;
mod kinds;
mod resources;
mod schema;
mod status;
mod warnings;
