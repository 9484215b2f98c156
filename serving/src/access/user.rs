//! The user of a request. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The group of all users with valid credentials.
const AUTHENTICATED: &str = "system:authenticated";
/// The group of all users without credentials.
const UNAUTHENTICATED: &str = "system:unauthenticated";
const ANONYMOUS: &str = "system:anonymous";

/// The user of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct User {
    #[serde(rename = "username")]
    pub(crate) name: String,
    /// The UID, which may be empty.
    pub(crate) uid: String,
    pub(crate) groups: Vec<String>,
    /// Further attributes with their values.
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// The user of a request without credentials.
    pub(crate) fn anonymous() -> Self {
        Self { name: ANONYMOUS.to_owned(), groups: vec![UNAUTHENTICATED.to_owned()], ..Self::default() }
    }

    /// Returns `true` for the user of a request without credentials.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS || self.is_in(UNAUTHENTICATED)
    }

    pub(super) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// The user as a member of the group of all users with valid credentials.
    ///
    /// # Upstream
    /// `AuthenticatedGroupAdder` in `apiserver/pkg/authentication/group`.
    pub(super) fn authenticated(mut self) -> Self {
        if self.name != ANONYMOUS && !self.is_in(AUTHENTICATED) && !self.is_in(UNAUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_with_valid_credentials_are_in_a_group_of_their_own() {
        let user = |name: &str, groups: &[&str]| User {
            name: name.to_owned(),
            groups: groups.iter().map(ToString::to_string).collect(),
            ..User::default()
        };
        for (before, after) in [
            (user("jane", &["dev"]), user("jane", &["dev", AUTHENTICATED])),
            (user("jane", &[AUTHENTICATED]), user("jane", &[AUTHENTICATED])),
            (user("jane", &[UNAUTHENTICATED]), user("jane", &[UNAUTHENTICATED])),
            (user(ANONYMOUS, &[]), user(ANONYMOUS, &[])),
        ] {
            assert_eq!(before.clone().authenticated(), after);
            assert_eq!(before.is_anonymous(), before.name == ANONYMOUS || before.is_in(UNAUTHENTICATED));
        }
        assert!(User::anonymous().is_anonymous());
    }
}
