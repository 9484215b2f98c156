//! Health: named checks, and how their results are printed.

mod check;
mod checks;
mod report;

pub use check::Check;
pub(crate) use checks::{api_server_check, caches_check, live};
pub(crate) use report::{Query, report};
