//! Decisions of the `ValidatingAdmissionPolicy` status controller: the kinds that a policy is checked with, their types,
//! and the warnings about its expressions.
//!
//! The controller itself is not here yet: nothing reads policies, discovery or `OpenAPI` documents, and nothing is
//! written. Everything in this folder is a plain function of what was read.
//!
//! ```text
//! rules ── kinds ──▶ group, version, kind ──▶ OpenAPI document ── schema ──▶ types ──┐
//! paramKind ───────▶ group, version, kind ──▶ OpenAPI document ── schema ──▶ types ──┼── warnings ──▶ status
//! validations, variables ────────────────────────────────────────────────────────────┘
//! ```
//!
//! # Guarantees
//! - Warnings are equal to Kubernetes 1.37.2: their order, the kinds in them, positions and texts. A corpus of
//!   policies that upstream has checked is compared in the tests.
//! - A document takes bounded time and memory: references that contain themselves end, and a schema with too many
//!   parts or too much depth is refused.
//! - Two checks of a policy give equal warnings.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/validatingadmissionpolicystatus` and the package `validating` of the API server's
//! admission plugins, in Kubernetes 1.37.2.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | Names of types in warnings end with nine digits of a hash of the kind and the policy. | They end with the nanoseconds of the clock. | A second check writes nothing. |
//! | Variables are compiled once for a kind and a policy. | They are compiled once for each expression. | It takes less time. |
//! | Syntax errors have a wording of their own, at the position of upstream. | They have the wording of ANTLR. | The parser is another. Policies with syntax errors cannot be created. |
//! | An optional element of type `dyn` in a literal is accepted. | The check panics. | A policy must not stop the check of others. |

pub mod kinds;
pub mod resources;
pub mod schema;
pub mod status;
pub mod types;
pub mod warnings;

#[cfg(test)]
mod tests;
