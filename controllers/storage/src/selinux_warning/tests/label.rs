//! SE-8: labels that conflict.

use crate::selinux_warning::label::conflict;

#[test]
fn se_8_labels_conflict_if_levels_differ_or_known_parts_do() {
    for (name, label, other, expected) in [
        ("equal", "system_u:system_r:container_t:s0:c1,c2", "system_u:system_r:container_t:s0:c1,c2", false),
        ("both empty", "", "", false),
        ("empty and of empty parts", "", ":::", false),
        ("a level, and none", ":::s0:c1,c2", "", true),
        ("a level, and empty parts", ":::s0:c1,c2", ":::", true),
        ("other levels", "system_u:system_r:container_t:s0:c1,c2", ":::s0:c98,c99", true),
        ("the level alone is the same", "system_u:system_r:container_t:s0:c1,c2", ":::s0:c1,c2", false),
        ("a type that one lacks", "::container_t:s0", ":::s0", false),
        ("parts that complete each other", "system_u:::s0", ":system_r::s0", false),
        ("other users", "system_u:::s0", "root:::s0", true),
        ("other roles", ":system_r::s0", ":object_r::s0", true),
        ("other types", "::container_t:s0", "::web_t:s0", true),
        ("levels differ behind their first colon", ":::s0:c1", ":::s0:c2", true),
    ] {
        assert_eq!(conflict(label, other), expected, "{name}");
        assert_eq!(conflict(other, label), expected, "{name}, reversed");
    }
}
