//! The registry of the controllers that are linked into this binary.

use std::collections::BTreeMap;

use kcm_config::{Gate, Row};

use super::ControllerDescriptor;

/// A valid set of controllers, sorted by name.
#[derive(Debug, Clone)]
pub struct Registry {
    controllers: Vec<ControllerDescriptor>,
}

/// A violation in a set of controllers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// No controller is registered.
    #[error(
        "no controller is linked into this binary: a crate that is only a dependency is not linked; \
         name it once in your main.rs, as in `use my_controller as _;`"
    )]
    Empty,
    /// Two controllers have one name.
    #[error("two controllers are named {name:?}: rename one of them, or link only one of their crates")]
    DuplicateName {
        /// The name that both controllers have.
        name: &'static str,
    },
    /// An alias is the name or an alias of another controller.
    #[error("the alias {alias:?} of {controller} also names {other}: remove one of them")]
    AliasClash {
        /// The alias that clashes.
        alias: &'static str,
        /// The controller with the alias.
        controller: &'static str,
        /// The controller that the alias also names.
        other: &'static str,
    },
    /// Two controllers define one feature gate differently.
    #[error("{controller} and {other} define the feature gate {gate:?} differently: define it once, and share it")]
    GateClash {
        /// The name of the gate.
        gate: &'static str,
        /// One of the controllers.
        controller: &'static str,
        /// The other of the controllers.
        other: &'static str,
    },
    /// A name that is not valid in `--controllers`.
    #[error(
        "{name:?} is not a valid name of a controller: use lower-case letters, digits and hyphens, beginning with a letter"
    )]
    BadName {
        /// The name that is not valid.
        name: &'static str,
    },
}

impl Registry {
    /// The controllers that registered themselves with `inventory::submit!` in crates linked into this binary.
    ///
    /// # Errors
    /// All violations at once; see [`Registry::of`]. [`RegistryError::Empty`] if no controller is linked.
    pub fn linked() -> Result<Self, Vec<RegistryError>> {
        Self::of(inventory::iter::<ControllerDescriptor>.into_iter().copied())
    }

    /// A registry of these controllers, for tests and for hosts that choose their controllers.
    ///
    /// # Errors
    /// All violations at once: no controller, duplicate names, clashing aliases, ill-formed names, a
    /// feature gate that is defined in two ways.
    pub fn of(controllers: impl IntoIterator<Item = ControllerDescriptor>) -> Result<Self, Vec<RegistryError>> {
        let mut controllers: Vec<_> = controllers.into_iter().collect();
        controllers.sort_by_key(|controller| controller.name);
        let errors = violations(&controllers);
        if errors.is_empty() { Ok(Self { controllers }) } else { Err(errors) }
    }

    /// All controllers, sorted by name.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &ControllerDescriptor> {
        self.controllers.iter()
    }

    /// The settings of all controllers, in the order of their names.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        self.iter().flat_map(|controller| controller.settings.iter().copied())
    }

    /// The feature gates that the controllers define, each once, sorted by name.
    #[must_use]
    pub fn feature_gates(&self) -> Vec<Gate> {
        let defined = self.iter().flat_map(|controller| controller.feature_gates);
        defined.map(|gate| (gate.name, *gate)).collect::<BTreeMap<_, _>>().into_values().collect()
    }

    /// The controller with that canonical name or alias.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&ControllerDescriptor> {
        self.controllers.iter().find(|controller| controller.name == name || controller.aliases.contains(&name))
    }
}

fn violations(controllers: &[ControllerDescriptor]) -> Vec<RegistryError> {
    if controllers.is_empty() {
        return vec![RegistryError::Empty];
    }
    let mut errors = Vec::new();
    let mut owners: BTreeMap<&str, &'static str> = BTreeMap::new();
    for controller in controllers {
        let name = controller.name;
        if !is_name(name) {
            errors.push(RegistryError::BadName { name });
        }
        if owners.insert(name, name).is_some() {
            errors.push(RegistryError::DuplicateName { name });
        }
    }
    for controller in controllers {
        for alias in controller.aliases {
            if !is_name(alias) {
                errors.push(RegistryError::BadName { name: alias });
            }
            if let Some(other) = owners.insert(alias, controller.name) {
                errors.push(RegistryError::AliasClash { alias, controller: controller.name, other });
            }
        }
    }
    let mut gates: BTreeMap<&str, (&Gate, &'static str)> = BTreeMap::new();
    for controller in controllers {
        for gate in controller.feature_gates {
            let (first, other) = *gates.entry(gate.name).or_insert((gate, controller.name));
            if first != gate {
                errors.push(RegistryError::GateClash { gate: gate.name, controller: controller.name, other });
            }
        }
    }
    errors
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Loops;

    const fn named(name: &'static str) -> ControllerDescriptor {
        ControllerDescriptor::new(name, |_| Ok(Loops::none("nothing to do")))
    }

    #[test]
    fn sorts_by_name_and_finds_by_alias() {
        let registry = Registry::of([named("b-controller").aliases(&["b"]), named("a-controller")]).unwrap();
        let names: Vec<_> = registry.iter().map(|it| it.name).collect();
        assert_eq!(names, ["a-controller", "b-controller"]);
        assert_eq!(registry.find("b").map(|it| it.name), Some("b-controller"));
        assert!(registry.find("c").is_none());
    }

    #[test]
    fn reports_every_violation_at_once() {
        let errors = Registry::of([
            named("a-controller").aliases(&["b-controller", "x"]),
            named("b-controller").aliases(&["x"]),
            named("b-controller"),
            named("Bad_Name"),
        ])
        .unwrap_err();
        assert_eq!(
            errors,
            [
                RegistryError::BadName { name: "Bad_Name" },
                RegistryError::DuplicateName { name: "b-controller" },
                RegistryError::AliasClash { alias: "b-controller", controller: "a-controller", other: "b-controller" },
                RegistryError::AliasClash { alias: "x", controller: "b-controller", other: "a-controller" },
            ]
        );
    }

    #[test]
    fn collects_the_gates_of_plugins_and_refuses_two_definitions_of_one() {
        use kcm_config::GateStage;
        const A: Gate = Gate { name: "PluginA", default: false, stage: GateStage::Alpha, locked: false };
        const B: Gate = Gate { name: "PluginB", default: true, stage: GateStage::Beta, locked: false };
        const OTHER_A: Gate = Gate { default: true, ..A };
        let registry = Registry::of([
            named("b-controller").feature_gates(&[B, A]),
            named("a-controller").feature_gates(&[A]).required_gates(&[A]),
        ]);
        assert_eq!(registry.unwrap().feature_gates(), [A, B]);
        let clash =
            Registry::of([named("a-controller").feature_gates(&[A]), named("b-controller").feature_gates(&[OTHER_A])]);
        assert_eq!(
            clash.unwrap_err(),
            [RegistryError::GateClash { gate: "PluginA", controller: "b-controller", other: "a-controller" }]
        );
    }

    #[test]
    fn an_empty_registry_shows_the_line_that_links_a_plugin() {
        let errors = Registry::of([]).unwrap_err();
        assert_eq!(errors, [RegistryError::Empty]);
        assert!(errors[0].to_string().contains("use my_controller as _;"));
    }
}
