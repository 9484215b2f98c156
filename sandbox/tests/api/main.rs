//! The API of the sandbox as clients see it, over its service.

mod client;
mod creates;
mod deletions;
mod faults;
mod patches;
mod reads;
mod rows;
mod support;
mod updates;
mod validation;
mod watches;
