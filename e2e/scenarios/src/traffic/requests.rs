//! The changes of the scripts as requests: a verb, what it is about, and its arguments.

use anyhow::{Context, Result, bail, ensure};
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};

/// When pods became ready: so long ago that no controller waits for anything.
const SINCE: &str = "2026-01-01T00:00:00Z";

/// Requests to one API server, in the namespace `default`.
pub(super) struct Requests(pub(super) Client);

impl Requests {
    pub(super) async fn list(&self, plural: &str) -> Result<Vec<Value>> {
        let list = self.get(plural).await?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    async fn get(&self, what: &str) -> Result<Value> {
        self.send(Method::GET, what, None).await
    }

    async fn create(&self, what: &str, object: Value) -> Result<Value> {
        self.send(Method::POST, what, Some(object)).await
    }

    async fn merge(&self, what: &str, patch: Value) -> Result<Value> {
        self.send(Method::PATCH, what, Some(patch)).await
    }

    async fn send(&self, method: Method, what: &str, body: Option<Value>) -> Result<Value> {
        let content = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(&method).uri(path(what)?).header("Content-Type", content);
        let request = request.body(body.map(|body| body.to_string().into_bytes()).unwrap_or_default())?;
        self.0.request(request).await.with_context(|| format!("{method} {what}"))
    }

    /// Makes a change; false if it is none of these.
    pub(super) async fn make(&self, change: &str) -> Result<bool> {
        let (verb, rest) = change.split_once(' ').context("a change has a verb and an object")?;
        let (what, argument) = rest.split_once(' ').unwrap_or((rest, ""));
        let words: Vec<&str> = argument.split(' ').collect();
        match (verb, words.as_slice()) {
            ("create", _) => drop(self.create(what, serde_json::from_str(argument)?).await?),
            ("set", _) => drop(self.merge(what, serde_json::from_str(argument)?).await?),
            ("delete", _) => {
                let now = json!({ "gracePeriodSeconds": 0 });
                drop(self.send(Method::DELETE, what, Some(now)).await?);
            }
            ("node", [zone]) => self.create_node(what, zone).await?,
            ("pod", [app, node]) => self.create_pod(what, app, node, None).await?,
            ("owned", [app, owner]) => self.create_pod(what, app, "", Some(owner)).await?,
            ("ready", [number]) => self.set_ready(what, number, "True").await?,
            ("unready", [number]) => self.set_ready(what, number, "False").await?,
            ("owner", [name, replicas]) => self.create_owner(what, name, replicas).await?,
            ("service", _) => self.create_service(what, argument).await?,
            ("budget", _) => self.create_budget(what, argument).await?,
            ("cidr", _) => {
                let cidrs: Vec<&str> = argument.split(',').collect();
                drop(self.create("servicecidrs", named(what, json!({ "spec": { "cidrs": cidrs } }))).await?);
            }
            ("address", [manager]) => self.create_address(what, manager).await?,
            ("evict", _) => ensure!(self.evict(what).await?, "the eviction of {what} was refused"),
            ("keep", _) => ensure!(!self.evict(what).await?, "the eviction of {what} was not refused"),
            ("mark-slices", _) => {
                for slice in self.slices(what).await? {
                    self.merge(&slice, json!({ "metadata": { "labels": { "example.com/by": "a-person" } } })).await?;
                }
            }
            ("delete-slices", _) => {
                for slice in self.slices(what).await? {
                    self.send(Method::DELETE, &slice, None).await?;
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    async fn create_node(&self, name: &str, zone: &str) -> Result<()> {
        let labels = json!({ "topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": name });
        self.create("nodes", named(name, json!({ "metadata": { "labels": labels } }))).await?;
        let ready = json!([{ "type": "Ready", "status": "True", "lastTransitionTime": SINCE }]);
        let status = json!({ "status": { "conditions": ready, "allocatable": { "cpu": "4" } } });
        self.merge(&format!("nodes/{name}/status"), status).await.map(drop)
    }

    /// Creates a pod, which an owner of `KIND/NAME` may control.
    async fn create_pod(&self, name: &str, app: &str, node: &str, owner: Option<&str>) -> Result<()> {
        let container = json!({
            "name": "main", "image": "example/main:1", "resources": { "requests": { "cpu": "100m" } },
            "ports": [{ "name": "http", "containerPort": 8080 }, { "name": "other", "containerPort": 9090 }],
        });
        let mut pod = json!({
            "metadata": { "labels": { "app": app } },
            "spec": { "containers": [container], "tolerations": [{ "operator": "Exists" }] },
        });
        if !node.is_empty() {
            pod["spec"]["nodeName"] = json!(node);
        }
        if let Some(owner) = owner {
            pod["metadata"]["ownerReferences"] = json!([self.reference(owner).await?]);
        }
        self.create("pods", named(name, pod)).await.map(drop)
    }

    async fn reference(&self, owner: &str) -> Result<Value> {
        let found = self.get(owner).await?;
        let (kind, version) = (&found["kind"], &found["apiVersion"]);
        let name = &found["metadata"]["name"];
        Ok(
            json!({ "apiVersion": version, "kind": kind, "name": name, "uid": found["metadata"]["uid"], "controller": true }),
        )
    }

    /// Makes a pod ready or not, with the addresses of that number.
    async fn set_ready(&self, pod: &str, number: &str, ready: &str) -> Result<()> {
        let (four, six) = (format!("10.9.0.{number}"), format!("fd00:9::{number}"));
        let status = json!({
            "phase": "Running", "startTime": SINCE, "podIP": four, "podIPs": [{ "ip": four }, { "ip": six }],
            "conditions": [{ "type": "Ready", "status": ready, "lastTransitionTime": SINCE }],
        });
        self.merge(&format!("pods/{pod}/status"), json!({ "status": status })).await.map(drop)
    }

    /// Creates an owner of pods, with replicas; `dep` is owned itself, by the deployment of that name.
    async fn create_owner(&self, plural: &str, name: &str, replicas: &str) -> Result<()> {
        let labels = json!({ "app": name });
        let selector =
            if plural == "replicationcontrollers" { labels.clone() } else { json!({ "matchLabels": labels }) };
        let spec = json!({ "containers": [{ "name": "main", "image": "example/main:1" }] });
        let mut owner = json!({ "spec": {
            "replicas": replicas.parse::<u32>()?, "selector": selector,
            "template": { "metadata": { "labels": labels }, "spec": spec },
        } });
        if plural == "statefulsets" {
            owner["spec"]["serviceName"] = json!(name);
        }
        if (plural, name) == ("replicasets", "dep") {
            owner["metadata"] = json!({ "ownerReferences": [self.reference("deployments/dep").await?] });
        }
        self.create(plural, named(name, owner)).await.map(drop)
    }

    /// Creates a service; its selector, `-` for none, comes before what is special in it.
    async fn create_service(&self, name: &str, argument: &str) -> Result<()> {
        let (app, special) = argument.split_once(' ').context("a service has a selector and a spec")?;
        let mut spec = json!({ "ports": [{ "name": "http", "port": 80, "targetPort": "http" }] });
        if app != "-" {
            spec["selector"] = json!({ "app": app });
        }
        merge_into(&mut spec, special)?;
        self.create("services", named(name, json!({ "spec": spec }))).await.map(drop)
    }

    async fn create_budget(&self, name: &str, argument: &str) -> Result<()> {
        let mut spec = json!({ "selector": { "matchLabels": { "app": name } } });
        merge_into(&mut spec, argument)?;
        self.create("poddisruptionbudgets", named(name, json!({ "spec": spec }))).await.map(drop)
    }

    async fn create_address(&self, address: &str, manager: &str) -> Result<()> {
        let family = if address.contains(':') { "IPv6" } else { "IPv4" };
        let labels =
            json!({ "ipaddress.kubernetes.io/managed-by": manager, "ipaddress.kubernetes.io/ip-family": family });
        let parent = json!({ "resource": "services", "namespace": "default", "name": "web" });
        let made = json!({ "metadata": { "labels": labels }, "spec": { "parentRef": parent } });
        self.create("ipaddresses", named(address, made)).await.map(drop)
    }

    /// Evicts a pod; false if its budget refuses that.
    async fn evict(&self, pod: &str) -> Result<bool> {
        match self.create(&format!("pods/{pod}/eviction"), named(pod, json!({}))).await {
            Ok(_) => Ok(true),
            Err(error) => match error.downcast_ref::<kube::Error>() {
                Some(kube::Error::Api(status)) if status.code == 429 => Ok(false),
                Some(_) | None => Err(error),
            },
        }
    }

    /// The slices of a service, as `endpointslices/NAME`.
    async fn slices(&self, service: &str) -> Result<Vec<String>> {
        let slices = self.list("endpointslices").await?.into_iter();
        let slices = slices.filter(|slice| slice["metadata"]["labels"]["kubernetes.io/service-name"] == service);
        Ok(slices.filter_map(|slice| Some(format!("endpointslices/{}", slice["metadata"]["name"].as_str()?))).collect())
    }
}

fn named(name: &str, mut object: Value) -> Value {
    object["metadata"]["name"] = json!(name);
    object
}

fn merge_into(spec: &mut Value, special: &str) -> Result<()> {
    let special: Value = serde_json::from_str(special).with_context(|| format!("{special} is no JSON"))?;
    for (field, value) in special.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    Ok(())
}

/// The path of objects by their plural, or of one with its name and subresource.
fn path(what: &str) -> Result<String> {
    let prefix = match what.split('/').next().unwrap_or_default() {
        "nodes" => "/api/v1",
        "pods" | "services" | "endpoints" | "events" | "serviceaccounts" | "replicationcontrollers" => {
            "/api/v1/namespaces/default"
        }
        "replicasets" | "deployments" | "statefulsets" => "/apis/apps/v1/namespaces/default",
        "endpointslices" => "/apis/discovery.k8s.io/v1/namespaces/default",
        "poddisruptionbudgets" => "/apis/policy/v1/namespaces/default",
        "horizontalpodautoscalers" => "/apis/autoscaling/v2/namespaces/default",
        "servicecidrs" | "ipaddresses" => "/apis/networking.k8s.io/v1",
        "apiservices" => "/apis/apiregistration.k8s.io/v1",
        other => bail!("the path of {other} is not known here"),
    };
    Ok(format!("{prefix}/{what}"))
}
