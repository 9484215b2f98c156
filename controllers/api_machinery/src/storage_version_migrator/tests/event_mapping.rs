//! Event mapping of the three loops.

use kcm_framework::api::ObjectKey;
use kcm_framework::informers::Change;

use super::migration;
use crate::storage_version_migrator::event_mapping::{key_for_checkpoint, key_for_migration};
use crate::storage_version_migrator::runner::resources_for;
use crate::storage_version_migrator::view::Migration;

#[test]
fn m1_m9_m14_a_migration_enqueues_its_resource_and_its_key() {
    let one = || migration("m", 0, &[]);
    let updated = Change::Updated { old: one(), new: one() };
    let deleted = |final_state_known| Change::Deleted { last: one(), final_state_known };
    for (name, change, resource, checkpoint, key) in [
        ("added", Change::Added(one()), true, true, true),
        ("updated", updated, true, true, true),
        ("deleted", deleted(true), true, false, true),
        ("its deletion was missed", deleted(false), true, false, true),
        ("undecodable", Change::<Migration>::Undecodable { last: one() }, false, false, false),
    ] {
        let named = ObjectKey::cluster_scoped("m");
        let resources: Vec<String> = resources_for(&change).iter().map(ToString::to_string).collect();
        assert_eq!(resources, if resource { vec!["websites.example.com"] } else { vec![] }, "{name}");
        assert_eq!(key_for_checkpoint(&change), checkpoint.then(|| named.clone()), "{name}");
        assert_eq!(key_for_migration(&change), key.then_some(named), "{name}");
    }
}
