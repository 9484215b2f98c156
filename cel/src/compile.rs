//! All steps from a source to a checked expression.

use crate::check::{self, Checked};
use crate::environment::{Environment, TypeProvider};
use crate::issues::{Issues, Log};
use crate::{parser, validate};

impl Environment {
    /// Parses, checks and validates an expression. `types` knows message and object types that
    /// the environment does not have; `&()` knows none.
    ///
    /// # Errors
    ///
    /// Returns the problems of the first of the three steps that finds any.
    pub fn compile(&self, source: &str, types: &dyn TypeProvider) -> Result<Checked, Issues> {
        let ast = parser::parse_with(source, self.macros()).map_err(|problems| Issues::of(source, problems))?;
        let mut log = Log::default();
        let Some(checked) = check::check(ast, self, types, &mut log) else { return Err(Issues::new(source, log)) };
        validate::validate(&checked, self.validators(), &mut log);
        if log.is_empty() { Ok(checked) } else { Err(Issues::new(source, log)) }
    }
}
