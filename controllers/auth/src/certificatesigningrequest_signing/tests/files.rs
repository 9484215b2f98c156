//! The files of a CA.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use kcm_framework::Metrics as Registry;

use crate::certificatesigningrequest_signing::files::AuthorityFiles;
use crate::certificatesigningrequest_signing::metrics::Metrics;
use crate::certificatesigningrequest_signing::pair::Pair;
use crate::shared::FileFailure;
use crate::tests::signing_requests::authority;

fn now() -> Timestamp {
    "2026-11-28T12:00:00Z".parse().unwrap()
}

fn pair(folder: &Path) -> Pair {
    Pair { certificate: folder.join("ca.crt"), key: folder.join("ca.key") }
}

#[test]
fn d1_a_broken_pair_leaves_the_last_valid_one_signing() {
    let folder = tempfile::tempdir().unwrap();
    let pair = pair(folder.path());
    let registry = Registry::new();
    let metrics = Metrics::register(&registry).unwrap();
    let files = AuthorityFiles::new(pair.clone());
    let reload = || files.reload(now(), &metrics);
    let is_failing = || {
        !registry.encode().contains("seconds{certificate_file=\"")
            || registry.encode().lines().any(|line| {
                line.starts_with("controller_csr_signing_ca_failing_since_seconds{") && !line.ends_with(" 0")
            })
    };
    reload();
    assert!(files.current().is_none() && is_failing(), "there are no files");
    let (first, second) = (authority("first"), authority("second"));
    let write = |certificate: &str, key: &str| {
        std::fs::write(&pair.certificate, certificate).unwrap();
        std::fs::write(&pair.key, key).unwrap();
    };
    write(&first.0, &first.1);
    reload();
    let signing = files.current().expect("the first pair is valid");
    assert!(!is_failing());
    let is_kept = || std::sync::Arc::ptr_eq(&signing, &files.current().unwrap());
    for (name, certificate, key) in [
        ("an empty certificate", "", first.1.as_str()),
        ("an empty key", first.0.as_str(), ""),
        ("the key of another certificate", &second.0, &first.1),
        ("a chain", &format!("{}{}", second.0, first.0), &second.1),
        ("headers", &second.0.replacen('\n', "\nA: b\n\n", 1), &second.1),
        ("a key with another label", &second.0, &second.1.replace("PRIVATE KEY", "MY PRIVATE KEY")),
    ] {
        write(certificate, key);
        reload();
        assert!(is_kept() && is_failing(), "{name}");
    }
    std::fs::remove_file(&pair.key).unwrap();
    reload();
    assert!(is_kept() && is_failing(), "the key is deleted");
    write(&second.0, &second.1);
    reload();
    assert!(!is_kept() && !is_failing(), "the second pair is valid");
    let signing = files.current().unwrap();
    reload();
    assert!(std::sync::Arc::ptr_eq(&signing, &files.current().unwrap()), "equal files are not read anew");
}

#[test]
fn d1_a_failure_is_logged_at_once_when_it_changes_and_every_ten_minutes() {
    let follow = |previous, text: &str, minutes| {
        FileFailure::follow(previous, text.to_owned(), now() + SignedDuration::from_mins(minutes))
    };
    let (failure, is_logged) = follow(None, "a", 0);
    assert!(is_logged);
    let (failure, is_logged) = follow(Some(failure), "a", 9);
    assert!(!is_logged);
    let (failure, is_logged) = follow(Some(failure), "b", 9);
    assert!(is_logged);
    let (failure, is_logged) = follow(Some(failure), "b", 18);
    assert!(!is_logged);
    let (_, is_logged) = follow(Some(failure), "b", 19);
    assert!(is_logged);
}
