//! The position in the list of objects.

use kcm_framework::api::{ObjectKey, Uid};

use crate::storage_version_migrator::progress::{Positions, Progress};
use crate::storage_version_migrator::text::Counts;

fn key(path: &str) -> ObjectKey {
    match path.split_once('/') {
        Some((namespace, name)) => ObjectKey::namespaced(namespace, name),
        None => ObjectKey::cluster_scoped(path),
    }
}

/// Reads a page and migrates its objects before `until`; returns those that were patched.
fn read(progress: &mut Progress, page: &[&str], remaining: u64, until: usize) -> Vec<String> {
    progress.begin_page(page.len(), remaining);
    let mut patched = Vec::new();
    for path in &page[..until] {
        if !progress.has_passed(&key(path)) {
            patched.push((*path).to_owned());
        }
        progress.pass(&key(path));
    }
    patched
}

#[test]
fn d7_an_interrupted_page_continues_behind_the_last_object() {
    let mut progress = Progress::default();
    // In the storage, `-` comes before `/`.
    let page = ["a-b/x", "a/x", "a/y", "b/x"];
    assert_eq!(read(&mut progress, &page, 2, 2), ["a-b/x", "a/x"]);
    assert_eq!(progress.counts(), Counts { left: 4, total: 6 });
    progress.interrupt();
    assert_eq!(read(&mut progress, &page, 2, 4), ["a/y", "b/x"]);
    progress.end_page(Some("next".to_owned()));
    assert_eq!((progress.counts(), progress.token.as_deref()), (Counts { left: 2, total: 6 }, Some("next")));
    assert_eq!(read(&mut progress, &["c/x", "c/y"], 0, 2), ["c/x", "c/y"]);
    progress.end_page(None);
    assert_eq!((progress.counts(), progress.is_finished), (Counts { left: 0, total: 6 }, true));
}

#[test]
fn d7_an_expired_token_lists_again_and_skips_what_was_migrated() {
    let mut progress = Progress::default();
    read(&mut progress, &["a", "b"], 3, 2);
    progress.end_page(Some("next".to_owned()));
    read(&mut progress, &["c", "d"], 1, 1);
    progress.restart();
    assert_eq!(progress.token, None);
    assert_eq!(read(&mut progress, &["a", "b"], 3, 2), [""; 0]);
    progress.end_page(Some("other".to_owned()));
    assert_eq!(read(&mut progress, &["c", "d"], 1, 2), ["d"], "pages behind the first are skipped too");
    assert_eq!(progress.counts(), Counts { left: 1, total: 5 });
}

#[test]
fn a_list_in_another_order_skips_nothing() {
    let mut progress = Progress::default();
    assert_eq!(read(&mut progress, &["b", "a", "c"], 2, 2), ["b", "a"]);
    progress.interrupt();
    assert_eq!(read(&mut progress, &["b", "a", "c"], 2, 3), ["b", "a", "c"]);
    progress.end_page(Some("next".to_owned()));
    assert_eq!(read(&mut progress, &["a0", "d"], 0, 2), ["a0", "d"]);
    // Nor does a page that follows an interrupted one.
    let mut progress = Progress::default();
    read(&mut progress, &["m", "n"], 1, 1);
    progress.interrupt();
    read(&mut progress, &["m", "n"], 1, 2);
    progress.end_page(Some("next".to_owned()));
    assert_eq!(read(&mut progress, &["a"], 0, 1), ["a"]);
}

#[test]
fn positions_belong_to_a_migration_and_not_to_its_name() {
    let positions = Positions::default();
    let (key, uid) = (ObjectKey::cluster_scoped("m"), Uid::from("u"));
    let mut progress = Progress::default();
    read(&mut progress, &["a"], 0, 1);
    positions.put(&key, &uid, progress.clone());
    assert_eq!(positions.take(&key, &uid), progress);
    assert_eq!(positions.take(&key, &uid), Progress::default(), "it was taken");
    positions.put(&key, &uid, progress.clone());
    assert_eq!(positions.take(&key, &Uid::from("v")), Progress::default());
    positions.put(&key, &uid, progress);
    positions.forget(&key);
    assert_eq!(positions.take(&key, &uid), Progress::default());
}
