//! A health check with a name.

use std::fmt;
use std::sync::Arc;

/// A named check of health, which must not block.
#[derive(Clone)]
pub struct Check {
    name: &'static str,
    run: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

impl Check {
    /// Makes a check from `run`. `Err` has the reason for the failure.
    #[must_use]
    pub fn new(name: &'static str, run: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self { name, run: Arc::new(run) }
    }

    /// The check that never fails.
    pub(crate) fn ping() -> Self {
        Self::new("ping", || Ok(()))
    }

    /// Its name, a segment of a path.
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// Runs the check.
    ///
    /// # Errors
    /// The reason why it fails.
    pub(crate) fn run(&self) -> Result<(), String> {
        (self.run)()
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Check").field(&self.name).finish()
    }
}
