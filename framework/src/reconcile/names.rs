//! The generator of names for new objects.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kcm_api::Fnv1a;

/// A generator of names for new objects, which all sessions of a manager share.
///
/// # Guarantees
/// The names of one owner depend on the seed, its loop and its uid, and on how many names it was given before; not on the
/// order in which other keys are reconciled. The memory does not grow with the number of owners.
#[derive(Debug, Clone)]
pub struct NameGenerator {
    seed: u64,
    /// Number of names given to the owners of each slot. Owners that share a slot share its count.
    given: Arc<[AtomicU32]>,
}

const SLOTS: usize = 1024;

impl NameGenerator {
    /// A generator that returns the same names to each owner for the same seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self { seed, given: (0..SLOTS).map(|_| AtomicU32::new(0)).collect() }
    }

    /// The next name of the owner with that uid in a loop: `base` and five random letters, cut to fit.
    #[must_use]
    pub fn generate(&self, loop_name: &str, owner: &str, base: &str) -> String {
        let of_owner = Fnv1a::seeded(self.seed).part(loop_name).part(owner).part(base);
        // A generator mixes what the hash leaves alike.
        let slot = fastrand::Rng::with_seed(of_owner.value()).usize(..SLOTS);
        let ordinal = self.given[slot].fetch_add(1, Ordering::Relaxed);
        let mut rng = fastrand::Rng::with_seed(of_owner.part(&ordinal.to_string()).value());
        kcm_api::name::generate_name(base, || rng.u32(..))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_of_an_owner_do_not_depend_on_other_owners() {
        let (alone, beside) = (NameGenerator::seeded(1), NameGenerator::seeded(1));
        let own = |of: &NameGenerator| of.generate("replicaset", "uid-1", "web-");
        let first = own(&beside);
        drop(beside.generate("replicaset", "uid-2", "web-"));
        drop(beside.generate("job", "uid-1", "web-"));
        assert_eq!([own(&alone), own(&alone)], [first, own(&beside)]);
        assert_ne!(own(&NameGenerator::seeded(1)), own(&NameGenerator::seeded(2)));
    }

    #[test]
    fn an_owner_gets_each_name_once() {
        let names = NameGenerator::seeded(1);
        let given: BTreeSet<_> = (0..300).map(|_| names.generate("replicaset", "uid-1", "web-")).collect();
        assert_eq!(given.len(), 300);
    }
}
