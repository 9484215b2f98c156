//! Parser of the Common Expression Language, with the positions of cel-go.
//!
//! The crate reads text and returns a tree or problems. It evaluates nothing, does not check types, does not expand
//! macros (`has(a.b)` stays a call), and knows nothing of Kubernetes.
//!
//! ```
//! let tree = kcm_cel::parse("object.spec.replicas <= 5")?;
//! assert_eq!(tree.expr(tree.root()).position.column, 21);
//!
//! let problems = kcm_cel::parse("object.spec[").unwrap_err();
//! assert_eq!(problems[0].to_string(), "1:13: Syntax error: expected an expression");
//! # Ok::<(), Vec<kcm_cel::Problem>>(())
//! ```
//!
//! # Guarantees
//!
//! - No input panics. A source of more than [`MAX_CODE_POINTS`] and a tree deeper than [`MAX_DEPTH`] are refused.
//! - Positions of nodes, and the messages other than syntax errors, are the ones of cel-go v0.29.2. Syntax errors have
//!   a wording of their own, and the first one ends the parse. The error of an empty source is at column 0; cel-go
//!   reports -1.
//!
//! # Other crates
//!
//! The parser of the crate `cel` is generated from cel-go's grammar, brings the ANTLR runtime and an evaluator, limits
//! recursion to 96 and chooses its own position for each node. `cel-core` has byte spans and other messages.

mod ast;
mod lexer;
mod literal;
mod parser;

pub use ast::{Ast, Element, Entry, Expr, ExprId, ExprKind, Field, Literal, Position};
pub use parser::{MAX_CODE_POINTS, MAX_DEPTH, parse};

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
