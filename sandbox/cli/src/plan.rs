//! [`Plan`]: the validated settings of a sandbox.

use std::fs;
use std::path::Path;

use kcm_config::{Effective, Origin};
use kcm_framework::ManagerBuilder;
use kcm_framework::client::Limits;
use kcm_sandbox_cluster::PodRules;

use crate::demo;
use crate::manager_port::ManagerPort;
use crate::rows::Options;

/// Validated settings; creating it only reads files.
pub(super) struct Plan {
    pub(super) options: Options,
    pub(super) rules: PodRules,
    pub(super) manager: ManagerBuilder,
    /// Names of the controllers that will run.
    pub(super) controllers: Vec<String>,
    /// The HTTPS port of the manager.
    pub(super) port: Option<ManagerPort>,
}

impl Plan {
    /// Validates the settings of the sandbox and of its controllers.
    ///
    /// # Errors
    /// All reasons against starting.
    pub(super) fn check(
        settings: &Effective,
        manager: Result<ManagerBuilder, Vec<String>>,
    ) -> Result<Self, Vec<String>> {
        let mut reasons = Vec::new();
        let mut collect = |result: Result<(), Vec<String>>| reasons.extend(result.err().into_iter().flatten());
        let options = Options::read(settings);
        let rules = options.as_ref().ok().map_or_else(|| Ok(PodRules::default()), pod_rules);
        collect(check_kubeconfig(settings).map_err(|reason| vec![reason]));
        if let (Ok(options), Ok(manager)) = (&options, &manager) {
            collect(check_demo(options, &controllers(manager)));
        }
        match (options, rules, manager) {
            (Ok(options), Ok(rules), Ok(manager)) if reasons.is_empty() => {
                let controllers = if options.run_controllers { controllers(&manager) } else { Vec::new() };
                Ok(Self { options, rules, manager: without_default_limits(manager), controllers, port: None })
            }
            (options, rules, manager) => {
                let mut all = options.err().unwrap_or_default();
                all.extend(rules.err());
                all.extend(reasons);
                all.extend(manager.err().into_iter().flatten());
                Err(all)
            }
        }
    }
}

impl Plan {
    /// Returns `true` if the controllers run that notice nodes that fail, so that nothing stands in for them.
    pub(super) fn runs_node_lifecycle(&self) -> bool {
        NODE_LIFECYCLE.iter().all(|needed| self.controllers.iter().any(|controller| controller == needed))
    }
}

/// The controllers that notice nodes that fail, and delete their pods.
const NODE_LIFECYCLE: [&str; 3] =
    ["node-lifecycle-controller", "taint-eviction-controller", "pod-garbage-collector-controller"];

/// Names of the controllers that the manager enables.
fn controllers(manager: &ManagerBuilder) -> Vec<String> {
    manager.enabled().map(|controller| controller.name.to_owned()).collect()
}

/// Removes the default client-side rate limit: the API server is in this process and needs no protection.
fn without_default_limits(manager: ManagerBuilder) -> ManagerBuilder {
    if manager.settings().origin("kube-api-qps") == Some(&Origin::Default) {
        manager.limits(Limits::UNLIMITED)
    } else {
        manager
    }
}

/// Refuses `--kubeconfig`: the controllers of a sandbox always use its own API server.
fn check_kubeconfig(settings: &Effective) -> Result<(), String> {
    match settings.origin("kubeconfig") {
        None | Some(Origin::Default) => Ok(()),
        Some(origin) => Err(format!(
            "{origin}: a sandbox is a cluster of its own and uses no other; --write-kubeconfig=FILE says where its \
             kubeconfig goes"
        )),
    }
}

/// Refuses settings with which the demo would hang: no nodes, or a needed controller that does not run.
fn check_demo(options: &Options, controllers: &[String]) -> Result<(), Vec<String>> {
    let mut reasons = Vec::new();
    if options.demo && options.nodes == 0 {
        reasons
            .push("--demo shows pods at work, and --nodes=0 leaves them nowhere to run: give at least one".to_owned());
    }
    for needed in demo::CONTROLLERS {
        let runs = options.run_controllers && controllers.iter().any(|controller| controller == needed);
        if options.demo && !runs {
            reasons
                .push(format!("--demo shows {needed}, which would not run: see --controllers and --run-controllers"));
        }
    }
    if reasons.is_empty() { Ok(()) } else { Err(reasons) }
}

fn pod_rules(options: &Options) -> Result<PodRules, String> {
    let Some(path) = &options.pod_rules else { return Ok(PodRules::default()) };
    read_rules(path).map_err(|reason| format!("--pods: {reason}"))
}

fn read_rules(path: &Path) -> Result<PodRules, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    PodRules::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}
