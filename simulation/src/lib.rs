//! A laboratory for controllers: it runs them against an API server in the process, and searches for the order of
//! events that breaks them.
//!
//! Controllers, framework and informers are the real ones. A run is the default order of events plus a [`Schedule`]: a
//! list of perturbations, each at an anchor. The same scenario, seed and schedule give the same run.
//!
//! ```text
//! Schedule ──▶ run ──▶ History (every accepted write) ──▶ Invariant, general oracles ──▶ Violation
//!    ▲                                                                                     │
//!    └──────────────────────── search, shrink ◀────────────────────────────────────────────┘
//! ```

mod conductor;
mod deliver;
mod gate;
mod history;
mod holds;
mod kubelets;
mod log;
mod plant;
mod process;
mod requests;
pub mod rules;
mod scenario;
pub mod schedule;
mod search;
mod shrink;
pub mod state;
mod violation;

pub use conductor::{Passed, Run, run};
pub use history::{Author, Change, History, Objects, Seen};
pub use plant::Plant;
pub use requests::Nature;
pub use scenario::Scenario;
pub use schedule::{Anchor, ParseError, Perturbation, Place, Schedule, What};
pub use search::{Budget, Finding, Planted, Search, Stop, check, check_planted, replay_folder, search, singles};
pub use shrink::{MAX_RUNS, Shrunk, shrink};
pub use violation::{Invariant, Violation};
