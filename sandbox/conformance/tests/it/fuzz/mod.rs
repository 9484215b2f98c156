//! Fuzz tests: for any requests in any order the sandbox responds in the API's form, in time, and stays consistent.
//!
//! Each property makes its requests from a list of numbers, so that a failure shrinks to few of them. The cases are the
//! same each time; `FUZZ_CASES=5000 cargo test -p kcm-sandbox-conformance fuzz` looks at more of them.

mod broken;
mod choices;
mod cluster;
mod corpus;
mod fields;
mod known;
mod mutate;
mod odd;
mod patches;
mod probe;
mod protobuf;
mod sequences;
mod sizes;
