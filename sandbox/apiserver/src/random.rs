//! Seeded random numbers: uids, generated names, addresses, watch durations.

use kcm_api::{Fnv1a, ObjectKey, Resource};

/// A seeded generator: the same seed yields the same numbers.
#[derive(Debug, Clone)]
pub struct Random(fastrand::Rng);

impl Random {
    /// Creates a generator from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// Returns the next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// Returns a number below `bound`, which must not be 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0.u64(..bound)
    }
}

/// Uids, generated names and numbers of objects, each by the key of its object.
///
/// One object more does not change the uids and names of others, so that two runs which differ in one object can be
/// compared.
///
/// # Guarantees
/// An object that is recreated under its name has another uid. The memory does not grow with the number of objects.
#[derive(Debug, Clone)]
pub(crate) struct Identities {
    seed: u64,
    /// Number of objects that were created under the keys of each slot. Keys that share a slot share its count.
    created: Box<[u32]>,
}

const SLOTS: usize = 4096;

impl Identities {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, created: vec![0; SLOTS].into_boxed_slice() }
    }

    /// Returns the uid of the next object of that key, a UUID of version 4.
    pub(crate) fn uid(&self, resource: &Resource, key: &ObjectKey) -> String {
        let hash = |seed| {
            let count = self.created[slot(of_key(self.seed, "key", resource, key))];
            Random::new(of_key(seed, "uid", resource, key).part(&count.to_string()).value()).next_u64()
        };
        let (high, low) = (hash(self.seed), hash(!self.seed));
        let high = high & !0xf000 | 0x4000;
        let low = low & !(0b11 << 62) | 0b10 << 62;
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }

    /// Returns the names for the next object with that `generateName`, in the order in which they are tried.
    pub(crate) fn names(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        base: &str,
    ) -> impl Iterator<Item = String> + use<> {
        let base_key = key_of_base(namespace, base);
        let count = self.created[slot(of_key(self.seed, "base", resource, &base_key))];
        let start = of_key(self.seed, "name", resource, &base_key).part(&count.to_string()).value();
        let (mut random, base) = (Random::new(start), base.to_owned());
        std::iter::repeat_with(move || {
            kcm_api::name::generate_name(&base, || u32::try_from(random.next_u64() >> 32).expect("half a word fits"))
        })
    }

    /// Returns a generator for the other choices about the object of that key, such as its address.
    pub(crate) fn choices(&self, resource: &Resource, key: &ObjectKey) -> Random {
        let count = self.created[slot(of_key(self.seed, "key", resource, key))];
        Random::new(of_key(self.seed, "choices", resource, key).part(&count.to_string()).value())
    }

    /// Counts an object that was created under `key`, and under a name generated from `base` if there is one.
    pub(crate) fn created(&mut self, resource: &Resource, key: &ObjectKey, base: Option<&str>) {
        let of_object = of_key(self.seed, "key", resource, key);
        let of_base = base.map(|base| of_key(self.seed, "base", resource, &key_of_base(key.namespace(), base)));
        for hash in [Some(of_object), of_base].into_iter().flatten() {
            let count = &mut self.created[slot(hash)];
            *count = count.wrapping_add(1);
        }
    }
}

fn key_of_base(namespace: Option<&str>, base: &str) -> ObjectKey {
    match namespace {
        Some(namespace) => ObjectKey::namespaced(namespace, base),
        None => ObjectKey::cluster_scoped(base),
    }
}

fn of_key(seed: u64, subject: &str, resource: &Resource, key: &ObjectKey) -> Fnv1a {
    [subject, &resource.group, &resource.plural, key.namespace().unwrap_or_default(), key.name()]
        .into_iter()
        .fold(Fnv1a::seeded(seed), kcm_api::Fnv1a::part)
}

fn slot(hash: Fnv1a) -> usize {
    // The generator mixes what the hash leaves alike.
    usize::try_from(Random::new(hash.value()).below(SLOTS as u64)).expect("a slot is a small number")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::NAMESPACES;

    const PODS: Resource = Resource::namespaced("", "v1", "pods", "Pod");

    fn pod(name: &str) -> ObjectKey {
        ObjectKey::namespaced("a", name)
    }

    #[test]
    fn an_object_more_changes_no_uid_and_no_name_of_others() {
        let alone = Identities::new(1);
        let mut beside = Identities::new(1);
        beside.created(&PODS, &pod("other"), Some("other-"));
        assert_eq!(alone.uid(&PODS, &pod("web")), beside.uid(&PODS, &pod("web")));
        let name = |of: &Identities| of.names(&PODS, Some("a"), "web-").next();
        assert_eq!(name(&alone), name(&beside));
        assert_ne!(alone.uid(&PODS, &pod("web")), Identities::new(2).uid(&PODS, &pod("web")));
    }

    #[test]
    fn a_recreated_object_has_another_uid_and_the_next_of_a_base_another_name() {
        let mut identities = Identities::new(1);
        let mut uids = std::collections::BTreeSet::new();
        let mut names = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            uids.insert(identities.uid(&PODS, &pod("web")));
            let name = identities.names(&PODS, Some("a"), "web-").next().unwrap();
            identities.created(&PODS, &pod(&name), Some("web-"));
            identities.created(&PODS, &pod("web"), None);
            names.insert(name);
        }
        assert_eq!((uids.len(), names.len()), (1000, 1000));
    }

    #[test]
    fn a_name_that_is_taken_is_followed_by_others() {
        let names: Vec<String> = Identities::new(1).names(&PODS, Some("a"), "web-").take(8).collect();
        assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), 8, "{names:?}");
    }

    #[test]
    fn uids_differ_by_resource_and_namespace() {
        let identities = Identities::new(1);
        let uids = [
            identities.uid(&PODS, &pod("web")),
            identities.uid(&PODS, &ObjectKey::namespaced("b", "web")),
            identities.uid(&NAMESPACES, &ObjectKey::cluster_scoped("web")),
        ];
        assert!(uids[0] != uids[1] && uids[1] != uids[2] && uids[0] != uids[2], "{uids:?}");
        assert_eq!(uids[0].as_bytes()[14], b'4');
    }
}
