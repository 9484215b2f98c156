//! Parser and type checker of the Common Expression Language, with the types, positions and messages of cel-go.
//!
//! The crate reads text and returns a checked tree, or problems. It evaluates nothing.
//!
//! ```
//! use kcm_cel::{Environment, Type};
//!
//! let environment = Environment::standard().with_variable("replicas", Type::Int);
//! let checked = environment.compile("replicas in [1, 3, 5]", &()).expect("the expression is valid");
//! assert_eq!(checked.result_type(), &Type::Bool);
//!
//! let issues = environment.compile("replicas > '1'", &()).unwrap_err();
//! assert_eq!(
//!     issues.to_string(),
//!     "ERROR: <input>:1:10: found no matching overload for '_>_' applied to '(int, string)'\n \
//!      | replicas > '1'\n \
//!      | .........^",
//! );
//! ```
//!
//! The types of objects and messages come from the caller:
//!
//! ```
//! use kcm_cel::{Environment, Type, TypeProvider};
//!
//! struct Pods;
//!
//! impl TypeProvider for Pods {
//!     fn find_type(&self, name: &str) -> Option<Type> {
//!         (name == "Pod").then(|| Type::object("Pod"))
//!     }
//!
//!     fn find_field(&self, type_name: &str, field: &str) -> Option<Type> {
//!         (type_name == "Pod" && field == "labels").then(|| Type::map(Type::String, Type::String))
//!     }
//! }
//!
//! let environment = Environment::standard().with_variable("pod", Type::object("Pod"));
//! assert!(environment.compile("pod.labels.exists(l, l == 'app')", &Pods).is_ok());
//! let issues = environment.compile("pod.labls", &Pods).unwrap_err();
//! assert_eq!(issues.problems()[0].message, "undefined field 'labls'");
//! ```
//!
//! # Steps
//!
//! ```text
//! source ── parse_with ──> Ast with macros expanded ── check ──> Checked ── validators ──> Checked
//!                │                                       │                       │
//!                └───────────────── problems ────────────┴───────────────────────┘──────> Issues
//! ```
//!
//! An [`Environment`] holds what an expression can use: signatures of functions, written as text, macros, variables,
//! named types and validators. A [`Library`] adds the declarations of one library of cel-go;
//! [`kubernetes::stored_expressions`] has the declarations of Kubernetes' admission policies.
//!
//! # Guarantees
//!
//! - No input panics. A source of more than [`MAX_CODE_POINTS`], a tree deeper than [`MAX_DEPTH`] and a tree of more
//!   than [`MAX_NODES`] nodes are refused. The check takes a bounded number of steps; types that share their parts can
//!   have names that are longer than memory, and are refused with one message of the whole source.
//! - Positions, types and messages are equal to cel-go v0.29.2, with three exceptions. Syntax errors have a wording
//!   of their own, and the first one ends the parse. The error of an empty source is at column 0; cel-go reports -1.
//!   An element that is written as optional and has type `dyn` is accepted; the validator of cel-go panics.
//!
//! # Other crates
//!
//! The parser of the crate `cel` is generated from cel-go's grammar, brings the ANTLR runtime and an evaluator, limits
//! recursion to 96, chooses its own position for each node and has no type checker. `cel-core` has byte spans, other
//! messages and fewer libraries.

mod ast;
mod check;
mod compile;
mod environment;
mod issues;
pub mod kubernetes;
mod lexer;
mod literal;
mod notation;
mod parser;
mod types;
mod validate;
mod validator;

pub use ast::{Ast, Element, Entry, Expr, ExprId, ExprKind, Field, Fold, Literal, Position};
pub use check::Checked;
pub use environment::{Environment, Library, TypeProvider};
pub use issues::Issues;
pub use notation::{DeclarationError, Overload};
pub use parser::{MAX_CODE_POINTS, MAX_DEPTH, MAX_NODES, Macro, parse, parse_with};
pub use types::{Primitive, Type};
pub use validator::Validator;

/// A problem of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Position, or `None` if the problem concerns the whole source.
    pub position: Option<Position>,
    /// Message, as cel-go words it unless it begins with `Syntax error: `.
    pub message: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.position {
            Some(position) => write!(f, "{}:{}: {}", position.line, position.column + 1, self.message),
            None => f.write_str(&self.message),
        }
    }
}
