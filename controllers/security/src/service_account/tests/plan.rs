//! Whether a namespace lacks its account.

use super::namespace;
use crate::service_account::plan::is_wanted;

#[test]
fn an_active_namespace_without_the_account_gets_it_and_no_other_does() {
    for (name, namespace, has_account, expected) in [
        ("active without it", Some(namespace("Active")), false, true),
        ("active with it", Some(namespace("Active")), true, false),
        ("terminating", Some(namespace("Terminating")), false, false),
        ("of an unknown phase", Some(namespace("Later")), false, false),
        ("gone", None, false, false),
    ] {
        assert_eq!(is_wanted(namespace.as_deref(), has_account), expected, "{name}");
    }
}
