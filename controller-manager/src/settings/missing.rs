//! The controllers of upstream that this program does not have.

use kcm_framework::Registry;

use super::upstream::{OF_CLOUDS, UPSTREAM, UpstreamController, UpstreamStart};

/// The controller that an item of `--controllers` names, if upstream has it and this program does not.
pub(crate) fn named_by(item: &str, registry: &Registry) -> Option<&'static UpstreamController> {
    let is_named = |controller: &&UpstreamController| controller.name == item || controller.aliases.contains(&item);
    UPSTREAM.iter().find(is_named).filter(|controller| registry.find(controller.name).is_none())
}

/// The canonical name of the controller of clouds that an item of `--controllers` enables, unless this program has it.
pub(crate) fn of_clouds(item: &str, registry: &Registry) -> Option<&'static str> {
    let is_named = |(name, aliases): &&(&str, &[&str])| *name == item || aliases.contains(&item);
    OF_CLOUDS.iter().find(is_named).map(|(name, _)| *name).filter(|name| registry.find(name).is_none())
}

/// Returns `true` if these items of `--controllers` enable a controller of upstream, linked or not.
///
/// # Upstream
/// `IsControllerEnabled` in `k8s.io/controller-manager/app/helper.go`.
pub(crate) fn is_enabled(name: &str, items: &[String]) -> bool {
    let Some(controller) = UPSTREAM.iter().find(|controller| controller.name == name) else { return false };
    let named = items.iter().find_map(|item| {
        let (item, on) = item.strip_prefix('-').map_or((item.as_str(), true), |item| (item, false));
        (controller.name == item || controller.aliases.contains(&item)).then_some(on)
    });
    let by_default = matches!(controller.start, UpstreamStart::ByDefault { .. });
    named.unwrap_or_else(|| by_default && items.iter().any(|item| item == "*"))
}

/// The controllers that upstream starts for these items of `--controllers` without being named, and this program lacks.
///
/// None for a program without any controller of upstream: it does not stand in for upstream's.
pub(crate) fn left_out(items: &[String], registry: &Registry, is_on: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let is_linked = |controller: &UpstreamController| registry.find(controller.name).is_some();
    let has_star = items.iter().any(|item| item == "*");
    if !has_star || !UPSTREAM.iter().any(is_linked) {
        return Vec::new();
    }
    let is_excluded = |controller: &UpstreamController| {
        let names = items.iter().filter_map(|item| item.strip_prefix('-'));
        names.into_iter().any(|name| controller.name == name || controller.aliases.contains(&name))
    };
    let starts = |controller: &UpstreamController| match controller.start {
        UpstreamStart::ByDefault { gates } => gates.iter().all(|gate| is_on(gate)),
        UpstreamStart::Named { .. } => false,
    };
    let missing = UPSTREAM.iter().filter(|controller| starts(controller) && !is_linked(controller));
    missing.filter(|controller| !is_excluded(controller)).map(|controller| controller.name).collect()
}

#[cfg(test)]
mod tests {
    use kcm_framework::{ControllerDescriptor, Loops};

    use super::*;

    fn registry(names: &[&'static str]) -> Registry {
        let controllers = names.iter().map(|name| ControllerDescriptor::new(name, |_| Ok(Loops::new())));
        Registry::of(controllers).expect("the names are good")
    }

    fn items(items: &[&str]) -> Vec<String> {
        items.iter().map(|&item| item.to_owned()).collect()
    }

    #[test]
    fn the_star_leaves_out_what_upstream_would_start() {
        let registry = registry(&["replicaset-controller"]);
        let left_out = |given: &[&str], on: bool| left_out(&items(given), &registry, |_| on);
        let all = left_out(&["*"], true);
        assert!(all.contains(&"job-controller") && all.contains(&"taint-eviction-controller"));
        for absent in ["replicaset-controller", "token-cleaner-controller"] {
            assert!(!all.contains(&absent), "{absent}");
        }
        assert!(!left_out(&["*"], false).contains(&"taint-eviction-controller"), "its gate is off");
        assert!(!left_out(&["*", "-job"], true).contains(&"job-controller"));
        assert_eq!(left_out(&["replicaset-controller"], true), [""; 0]);
    }

    #[test]
    fn the_first_item_that_names_a_controller_decides() {
        let is_enabled = |given: &[&str]| super::is_enabled("node-ipam-controller", &items(given));
        assert!(is_enabled(&["*"]) && is_enabled(&["nodeipam"]) && is_enabled(&["node-ipam-controller", "-nodeipam"]));
        assert!(!is_enabled(&[]) && !is_enabled(&["*", "-nodeipam"]) && !is_enabled(&["-nodeipam", "nodeipam"]));
        assert!(!super::is_enabled("token-cleaner-controller", &items(&["*"])));
    }

    #[test]
    fn a_program_of_plugins_leaves_nothing_out() {
        assert_eq!(left_out(&items(&["*"]), &registry(&["greeter-controller"]), |_| true), [""; 0]);
    }

    #[test]
    fn controllers_of_clouds_are_known_until_a_plugin_brings_them() {
        let none = registry(&["greeter-controller"]);
        assert_eq!(of_clouds("service", &none), Some("service-lb-controller"));
        assert_eq!(of_clouds("node-route-controller", &none), Some("node-route-controller"));
        assert_eq!(of_clouds("-route", &none), None, "it is turned off");
        assert_eq!(of_clouds("job", &none), None);
        assert_eq!(of_clouds("service", &registry(&["service-lb-controller"])), None);
    }

    #[test]
    fn what_is_linked_is_not_missing() {
        let registry = registry(&["job-controller"]);
        assert_eq!(named_by("job", &registry), None);
        assert_eq!(named_by("cronjob", &registry).map(|controller| controller.name), Some("cronjob-controller"));
        assert_eq!(named_by("greeter", &registry), None);
    }
}
