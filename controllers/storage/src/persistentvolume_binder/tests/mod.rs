//! Tests of the binder: pure tables, and claims and volumes on an API server in the process.

mod fixtures;
mod life;
mod matching;
mod modes;
mod provision;
mod pure;
mod reclaim;
mod rows;
