//! The generator of names for new objects.

use std::sync::Arc;

use parking_lot::Mutex;

/// A generator of names for new objects, from one seeded random generator that all sessions share.
#[derive(Debug, Clone)]
pub struct NameGenerator(Arc<Mutex<fastrand::Rng>>);

impl NameGenerator {
    /// A generator that returns the same names in the same order for the same seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))))
    }

    /// `base` and five random letters, cut to fit.
    #[must_use]
    pub fn generate(&self, base: &str) -> String {
        let mut rng = self.0.lock();
        kcm_api::name::generate_name(base, || rng.u32(..))
    }
}
