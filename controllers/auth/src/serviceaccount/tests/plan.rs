//! The plan for a namespace.

use super::namespace;
use crate::serviceaccount::plan::is_wanted;

#[test]
fn an_active_namespace_without_the_account_gets_it_and_no_other_does() {
    for (name, namespace, has_account, expected) in [
        ("active without it", namespace("Active"), false, true),
        ("active with it", namespace("Active"), true, false),
        ("terminating", namespace("Terminating"), false, false),
        ("of an unknown phase", namespace("Later"), false, false),
    ] {
        assert_eq!(is_wanted(&namespace, has_account), expected, "{name}");
    }
}
