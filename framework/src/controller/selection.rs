//! The controllers that `--controllers` enables.

use super::{ControllerDescriptor, Registry, StartGroup};

/// A validated `--controllers` list.
///
/// Items are `*`, `name` or `-name`, canonical names or aliases. The first item that names a controller
/// decides; `*` enables the controllers that no item names and that are on by default.
///
/// # Upstream
/// `IsControllerEnabled` in `k8s.io/controller-manager/app/helper.go`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    items: Vec<(&'static str, bool)>,
    star: bool,
}

/// An invalid item of `--controllers`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// The name is unknown.
    #[error("{item:?} is not in the list of known controllers{}", nearest.map(|name| format!("; did you mean {name:?}?")).unwrap_or_default())]
    Unknown {
        /// The item as given, without its `-`.
        item: String,
        /// The nearest known name.
        nearest: Option<&'static str>,
    },
    /// Upstream has the controller and this binary does not.
    #[error(
        "the controller {name:?} is not part of this binary yet: let another controller manager run it, and leave it out here"
    )]
    Absent {
        /// Canonical name of the controller.
        name: &'static str,
    },
}

/// The canonical name and the aliases of a controller that upstream has and this binary does not.
pub type AbsentController = (&'static str, &'static [&'static str]);

impl Default for Selection {
    /// `*`: every controller that is on by default.
    fn default() -> Self {
        Self { items: Vec::new(), star: true }
    }
}

impl Selection {
    /// Checks `items` against the linked controllers and the known but `absent` controllers.
    ///
    /// # Errors
    /// Every unknown item, and every absent controller that is named without `-`.
    pub fn parse<'a>(
        items: impl IntoIterator<Item = &'a str>,
        registry: &Registry,
        absent: &[AbsentController],
    ) -> Result<Self, Vec<SelectionError>> {
        let mut selection = Self { items: Vec::new(), star: false };
        let mut errors = Vec::new();
        for item in items {
            if item == "*" {
                selection.star = true;
                continue;
            }
            let (name, on) = item.strip_prefix('-').map_or((item, true), |name| (name, false));
            let missing = absent.iter().find(|(canonical, aliases)| *canonical == name || aliases.contains(&name));
            match (registry.find(name), missing) {
                (Some(controller), _) => selection.items.push((controller.name, on)),
                (None, Some((canonical, _))) if on => errors.push(SelectionError::Absent { name: canonical }),
                (None, Some(_)) => {}
                (None, None) => errors
                    .push(SelectionError::Unknown { item: name.to_owned(), nearest: nearest(name, registry, absent) }),
            }
        }
        if errors.is_empty() { Ok(selection) } else { Err(errors) }
    }

    /// The same selection without these controllers. Controllers of the first group stay enabled.
    #[must_use]
    pub fn without(mut self, names: impl IntoIterator<Item = &'static str>) -> Self {
        let excluded: Vec<_> = names.into_iter().map(|name| (name, false)).collect();
        // The first item that names a controller decides.
        self.items.splice(..0, excluded);
        self
    }

    /// Returns `true` if the list enables `controller`. Controllers of the first group are always enabled.
    #[must_use]
    pub fn enables(&self, controller: &ControllerDescriptor) -> bool {
        if controller.start_group == StartGroup::First {
            return true;
        }
        let named = self.items.iter().find(|(name, _)| *name == controller.name);
        named.map_or(self.star && controller.on_by_default, |(_, on)| *on)
    }
}

fn nearest(name: &str, registry: &Registry, absent: &[AbsentController]) -> Option<&'static str> {
    let linked = registry.iter().map(|controller| (controller.name, controller.aliases));
    let all = linked.chain(absent.iter().copied());
    kcm_config::nearest(name, all.flat_map(|(name, aliases)| std::iter::once(name).chain(aliases.iter().copied())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Loops;

    const fn named(name: &'static str) -> ControllerDescriptor {
        ControllerDescriptor::new(name, |_| Ok(Loops::none("nothing to do")))
    }

    fn registry() -> Registry {
        Registry::of([
            named("replicaset-controller").aliases(&["replicaset"]),
            named("deployment-controller").aliases(&["deployment"]),
            named("token-cleaner-controller").off_by_default(),
            named("serviceaccount-token-controller").start_group(StartGroup::First),
        ])
        .unwrap()
    }

    const ABSENT: &[AbsentController] = &[("job-controller", &["job"])];

    #[test]
    fn decides_as_upstream_does() {
        let always = "serviceaccount-token-controller";
        for (items, expected) in [
            (&["*"][..], &["deployment-controller", "replicaset-controller", always][..]),
            (&[][..], &[always]),
            (&["replicaset"], &["replicaset-controller", always]),
            (&["*", "-replicaset"], &["deployment-controller", always]),
            (&["-replicaset", "*"], &["deployment-controller", always]),
            (&["-replicaset"], &[always]),
            (&["replicaset", "-replicaset-controller"], &["replicaset-controller", always]),
            (&["-replicaset", "replicaset-controller"], &[always]),
            (
                &["*", "token-cleaner-controller"],
                &["deployment-controller", "replicaset-controller", always, "token-cleaner-controller"],
            ),
            (
                &["*", "-job", "-serviceaccount-token-controller"],
                &["deployment-controller", "replicaset-controller", always],
            ),
        ] {
            let registry = registry();
            let selection = Selection::parse(items.iter().copied(), &registry, ABSENT).unwrap();
            let enabled: Vec<_> = registry.iter().filter(|c| selection.enables(c)).map(|it| it.name).collect();
            assert_eq!(enabled, expected, "--controllers={}", items.join(","));
        }
    }

    #[test]
    fn without_excludes_what_the_list_enables() {
        let registry = registry();
        let selection = Selection::parse(["*", "replicaset"], &registry, ABSENT).unwrap();
        let selection = selection.without(["replicaset-controller", "serviceaccount-token-controller"]);
        let enabled: Vec<_> = registry.iter().filter(|c| selection.enables(c)).map(|it| it.name).collect();
        assert_eq!(enabled, ["deployment-controller", "serviceaccount-token-controller"]);
    }

    #[test]
    fn lists_every_refused_item_with_the_nearest_known_name() {
        let errors = Selection::parse(["replicasets", "-*", "job", "-jobb", "zzz"], &registry(), ABSENT).unwrap_err();
        assert_eq!(
            errors,
            [
                SelectionError::Unknown { item: "replicasets".into(), nearest: Some("replicaset") },
                SelectionError::Unknown { item: "*".into(), nearest: None },
                SelectionError::Absent { name: "job-controller" },
                SelectionError::Unknown { item: "jobb".into(), nearest: Some("job") },
                SelectionError::Unknown { item: "zzz".into(), nearest: None },
            ]
        );
        assert_eq!(
            errors[0].to_string(),
            r#""replicasets" is not in the list of known controllers; did you mean "replicaset"?"#
        );
    }
}
