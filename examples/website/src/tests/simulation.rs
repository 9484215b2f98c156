//! A website under every fault: kills, lost responses, late events.

use kcm_framework::ControllerDescriptor;
use kcm_simulation::{Scenario, check};
use kcm_testing::TestEnvironment;
use kcm_testing::sandbox::{DEPLOYMENTS, ObjectKey, Resource, Sandbox};
use kube::CustomResourceExt as _;
use serde_json::{Value, json};

use crate::hosts::Hosts;
use crate::website::Website;
use crate::{WEBSITE, WEBSITES};

const DEFINITIONS: Resource =
    Resource::cluster_scoped("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition");
const HOST: &str = "shop.example.com";

/// A website that gets another number of replicas and is deleted.
pub(super) fn served(operator: ControllerDescriptor) -> Scenario {
    let delete = |sandbox: &Sandbox| drop(sandbox.delete(&WEBSITES, &shop()));
    let three = json!({ "spec": { "replicas": 3 } });
    Scenario::new("website served", &TestEnvironment::new([operator]))
        .object(&DEFINITIONS, serde_json::to_value(Website::crd()).expect("the definition is JSON"))
        .object(&WEBSITES, website())
        .outside(Hosts::in_memory)
        .then(|sandbox| is_served(sandbox, 2), move |sandbox| drop(sandbox.patch(&WEBSITES, &shop(), &three)))
        .then(|sandbox| is_served(sandbox, 3), delete)
        .act("delete", delete)
        .always("W1", "a host leads to a website that does not exist", |sandbox, hosts: &Hosts| {
            hosts.leads_to(HOST).is_none() || sandbox.get(&WEBSITES, &shop()).is_some()
        })
        .goal_with(|sandbox, hosts: &Hosts| sandbox.get(&WEBSITES, &shop()).is_none() && hosts.leads_to(HOST).is_none())
}

fn website() -> Value {
    json!({
        "metadata": { "namespace": "default", "name": "shop" },
        "spec": { "image": "nginx", "replicas": 2, "host": HOST },
    })
}

fn shop() -> ObjectKey {
    ObjectKey::namespaced("default", "shop")
}

/// Returns `true` if the Deployment has so many replicas and the status says so, or the website is deleted.
fn is_served(sandbox: &Sandbox, replicas: i64) -> bool {
    let Some(website) = sandbox.get(&WEBSITES, &shop()) else { return true };
    let deployment = sandbox.get(&DEPLOYMENTS, &shop()).unwrap_or_default();
    deployment["spec"]["replicas"] == replicas
        && website["status"]["observedGeneration"] == website["metadata"]["generation"]
}

#[test]
fn no_perturbation_of_a_website_breaks_a_rule() {
    check(&served(WEBSITE), 40);
}
