//! The scheduling requirements of a pod. Pure.

use kcm_api::scheduling::{ComparisonOperators, Taint, Toleration};
use kcm_api::{LabelSelector, Labels, Selector};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::resource_list::ResourceList;
use kcm_sandbox_apiserver::json;
use kcm_sandbox_apiserver::json::labels_of;

/// Default requests for scoring.
const LEAST_CPU: i64 = 100;
const LEAST_MEMORY: i64 = 200 * 1024 * 1024 * 1000;

/// The scheduling requirements of a pod.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wants {
    pub(crate) namespace: Box<str>,
    pub(crate) labels: Labels,
    pub(crate) requests: ResourceList,
    /// CPU and memory for scoring.
    pub(crate) weight: (i64, i64),
    pub(crate) node_selector: Vec<(Box<str>, Box<str>)>,
    /// Terms of the required node affinity, one of which must match; `None` if there are none.
    pub(crate) node_terms: Option<Vec<NodeTerm>>,
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) host_ports: Vec<HostPort>,
    pub(crate) affinity: Vec<PodTerm>,
    pub(crate) anti_affinity: Vec<PodTerm>,
    pub(crate) spread: Vec<Spread>,
    /// Hash that is equal for pods that fit on the same nodes.
    pub(crate) shape: u64,
}

/// A node affinity term: all of its expressions must match.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NodeTerm {
    pub(crate) labels: Vec<Expression>,
    pub(crate) fields: Vec<Expression>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Expression {
    pub(crate) key: String,
    pub(crate) operator: String,
    #[serde(default)]
    pub(crate) values: Vec<String>,
}

/// The pods that an affinity term or a spread constraint selects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Group {
    /// Empty selects all namespaces.
    pub(crate) namespaces: Vec<String>,
    /// The label selector as JSON: equal selectors have equal JSON.
    pub(crate) selector: String,
}

/// A required pod (anti-)affinity term.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PodTerm {
    pub(crate) group: Group,
    pub(crate) topology: String,
}

/// A `DoNotSchedule` topology spread constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spread {
    pub(crate) group: Group,
    pub(crate) topology: String,
    pub(crate) max_skew: i64,
    pub(crate) min_domains: usize,
    pub(crate) honours_affinity: bool,
    pub(crate) honours_taints: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostPort {
    pub(crate) address: String,
    pub(crate) protocol: String,
    pub(crate) port: i64,
}

impl HostPort {
    pub(crate) fn collides(&self, other: &Self) -> bool {
        let everywhere = |address: &str| address == "0.0.0.0";
        self.port == other.port
            && self.protocol == other.protocol
            && (self.address == other.address || everywhere(&self.address) || everywhere(&other.address))
    }
}

impl Group {
    /// Returns the parsed selector.
    pub(crate) fn selector(&self) -> Selector {
        let parsed = serde_json::from_str::<LabelSelector>(&self.selector).ok();
        parsed.and_then(|parsed| Selector::try_from(&parsed).ok()).unwrap_or_else(Selector::nothing)
    }
}

pub(crate) fn read(pod: &Value) -> Wants {
    let namespace = json::text(pod, &["metadata", "namespace"]).unwrap_or_default();
    let labels = labels_of(pod);
    let requests = requests(pod);
    let cpu = requests.get("cpu");
    let memory = requests.get("memory");
    let weight = (if cpu == 0 { LEAST_CPU } else { cpu }, if memory == 0 { LEAST_MEMORY } else { memory });
    let node_selector = json::at(pod, &["spec", "nodeSelector"]).and_then(Value::as_object);
    let node_selector = node_selector.into_iter().flatten();
    let affinity = |kind: &str| {
        let terms = ["spec", "affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution"];
        json::list(pod, &terms).iter().filter_map(|term| pod_term(term, namespace, &labels)).collect::<Vec<_>>()
    };
    let mut wants = Wants {
        namespace: namespace.into(),
        requests,
        weight,
        node_selector: node_selector
            .map(|(key, value)| (key.as_str().into(), value.as_str().unwrap_or_default().into()))
            .collect(),
        node_terms: node_terms(pod),
        tolerations: tolerations(pod),
        host_ports: host_ports(pod),
        affinity: affinity("podAffinity"),
        anti_affinity: affinity("podAntiAffinity"),
        spread: spread(pod, namespace, &labels),
        labels,
        shape: 0,
    };
    wants.shape = shape(&wants);
    wants
}

/// # Upstream
/// `component-helpers/resource.PodRequests`
fn requests(pod: &Value) -> ResourceList {
    let mut sum = ResourceList::default();
    for container in json::list(pod, &["spec", "containers"]) {
        sum.add(&ResourceList::of_container(container));
    }
    let mut sidecars = ResourceList::default();
    let mut peak = ResourceList::default();
    for container in json::list(pod, &["spec", "initContainers"]) {
        let requests = ResourceList::of_container(container);
        if json::text(container, &["restartPolicy"]) == Some("Always") {
            sum.add(&requests);
            sidecars.add(&requests);
            peak.raise_to(&sidecars);
        } else {
            let mut together = sidecars.clone();
            together.add(&requests);
            peak.raise_to(&together);
        }
    }
    sum.raise_to(&peak);
    sum.replace(&ResourceList::read(json::at(pod, &["spec", "resources", "requests"])));
    sum.add(&ResourceList::read(json::at(pod, &["spec", "overhead"])));
    sum
}

fn node_terms(pod: &Value) -> Option<Vec<NodeTerm>> {
    let required = ["spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
    let required = json::at(pod, &required)?;
    let expressions = |term: &Value, list: &str| -> Option<Vec<Expression>> {
        json::list(term, &[list]).iter().map(|it| Expression::deserialize(it).ok()).collect()
    };
    let terms = json::list(required, &["nodeSelectorTerms"]).iter().filter_map(|term| {
        Some(NodeTerm { labels: expressions(term, "matchExpressions")?, fields: expressions(term, "matchFields")? })
    });
    Some(terms.collect())
}

fn host_ports(pod: &Value) -> Vec<HostPort> {
    let mut ports = Vec::new();
    let sidecars = json::list(pod, &["spec", "initContainers"]).iter();
    let sidecars = sidecars.filter(|container| json::text(container, &["restartPolicy"]) == Some("Always"));
    for container in json::list(pod, &["spec", "containers"]).iter().chain(sidecars) {
        for port in json::list(container, &["ports"]) {
            let text = |field: &str, default: &str| {
                json::text(port, &[field]).filter(|text| !text.is_empty()).unwrap_or(default).to_owned()
            };
            if let Some(number) = json::at(port, &["hostPort"]).and_then(Value::as_i64).filter(|port| *port > 0) {
                let (address, protocol) = (text("hostIP", "0.0.0.0"), text("protocol", "TCP"));
                ports.push(HostPort { address, protocol, port: number });
            }
        }
    }
    ports
}

fn pod_term(term: &Value, namespace: &str, labels: &Labels) -> Option<PodTerm> {
    let topology = json::text(term, &["topologyKey"])?.to_owned();
    let mut namespaces: Vec<String> = json::list(term, &["namespaces"])
        .iter()
        .filter_map(|namespace| namespace.as_str().map(str::to_owned))
        .collect();
    let everywhere = json::at(term, &["namespaceSelector"])
        .is_some_and(|selector| selector.as_object().is_some_and(serde_json::Map::is_empty));
    if everywhere {
        namespaces.clear();
    } else if namespaces.is_empty() {
        namespaces.push(namespace.to_owned());
    }
    namespaces.sort();
    Some(PodTerm { group: Group { namespaces, selector: selector(term, labels)? }, topology })
}

/// Returns the selector of a term, including its `matchLabelKeys` and `mismatchLabelKeys`.
fn selector(term: &Value, labels: &Labels) -> Option<String> {
    let mut selector = json::at(term, &["labelSelector"])?.clone();
    for (list, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in json::list(term, &[list]).iter().filter_map(Value::as_str) {
            let Some(value) = labels.get(key) else { continue };
            let mut expressions = json::list(&selector, &["matchExpressions"]).to_vec();
            expressions.push(json!({ "key": key, "operator": operator, "values": [value] }));
            json::set(&mut selector, &["matchExpressions"], Some(expressions.into()));
        }
    }
    Some(selector.to_string())
}

fn spread(pod: &Value, namespace: &str, labels: &Labels) -> Vec<Spread> {
    let constraints = json::list(pod, &["spec", "topologySpreadConstraints"]).iter();
    let hard = constraints.filter(|it| json::text(it, &["whenUnsatisfiable"]) != Some("ScheduleAnyway"));
    hard.filter_map(|constraint| {
        let number = |field: &str| json::at(constraint, &[field]).and_then(Value::as_i64);
        Some(Spread {
            group: Group { namespaces: vec![namespace.to_owned()], selector: selector(constraint, labels)? },
            topology: json::text(constraint, &["topologyKey"])?.to_owned(),
            max_skew: number("maxSkew").unwrap_or(1),
            min_domains: number("minDomains").and_then(|it| usize::try_from(it).ok()).unwrap_or(1),
            honours_affinity: json::text(constraint, &["nodeAffinityPolicy"]) != Some("Ignore"),
            honours_taints: json::text(constraint, &["nodeTaintsPolicy"]) == Some("Honor"),
        })
    })
    .collect()
}

fn shape(wants: &Wants) -> u64 {
    let mut wants = wants.clone();
    let alone = wants.affinity.is_empty() && wants.anti_affinity.is_empty() && wants.spread.is_empty();
    if alone {
        // Labels still matter for the anti-affinity of bound pods; those terms are few and checked each time.
        wants.labels = wants.labels.iter().filter(|(key, _)| *key != kcm_api::POD_TEMPLATE_HASH).collect();
    }
    Dice::new(0).number(&[&format!("{wants:?}")])
}

fn tolerations(pod: &Value) -> Vec<Toleration> {
    json::list(pod, &["spec", "tolerations"]).iter().map(toleration).collect()
}

/// Decodes a toleration of a pod.
pub(crate) fn toleration(toleration: &Value) -> Toleration {
    Toleration::deserialize(toleration).expect("the API server must have checked the type of each toleration")
}

/// Decodes a taint of a node.
pub(crate) fn taint(taint: &Value) -> Taint {
    Taint::deserialize(taint).expect("the API server must have checked the type of each taint")
}

/// Reports whether a toleration tolerates a taint.
pub(crate) fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    toleration.tolerates(taint, ComparisonOperators::Enabled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(cpu: &str) -> Value {
        json!({ "resources": { "requests": { "cpu": cpu } } })
    }

    #[test]
    fn init_container_requests_count_as_the_maximum() {
        let sidecar = |cpu: &str| {
            let mut sidecar = container(cpu);
            sidecar["restartPolicy"] = json!("Always");
            sidecar
        };
        for (name, init, main, overhead, expected) in [
            ("containers run together", vec![], vec![container("1"), container("2")], None, 3_000),
            ("init containers run alone", vec![container("5"), container("4")], vec![container("1")], None, 5_000),
            ("sidecars stay", vec![sidecar("1"), container("4")], vec![container("2")], None, 5_000),
            ("earlier init containers are gone", vec![container("4"), sidecar("1")], vec![container("2")], None, 4_000),
            ("sidecars run beside containers", vec![sidecar("2")], vec![container("2")], None, 4_000),
            ("overhead comes on top", vec![], vec![container("1")], Some("100m"), 1_100),
        ] {
            let pod = json!({ "spec": {
                "initContainers": init, "containers": main, "overhead": overhead.map(|cpu| json!({ "cpu": cpu })),
            } });
            assert_eq!(read(&pod).requests.get("cpu"), expected, "{name}");
        }
    }

    #[test]
    fn pod_level_requests_override_those_of_containers() {
        let pod = json!({ "spec": {
            "containers": [container("1")], "resources": { "requests": { "cpu": "3" } },
        } });
        assert_eq!(read(&pod).requests.get("cpu"), 3_000);
    }

    #[test]
    fn tolerations_that_compare_numbers_are_honoured() {
        let taint = taint(&json!({ "key": "sla", "value": "950", "effect": "NoSchedule" }));
        for (operator, expected) in [("Gt", true), ("Lt", false)] {
            let pod = json!({ "spec": { "tolerations": [{ "key": "sla", "operator": operator, "value": "900" }] } });
            assert_eq!(tolerates(&tolerations(&pod)[0], &taint), expected, "{operator}");
        }
    }

    #[test]
    fn replicas_of_one_set_have_one_shape_and_revisions_of_a_deployment_too() {
        let pod = |name: &str, hash: &str, cpu: &str| {
            read(&json!({
                "metadata": { "name": name, "labels": { "app": "web", "pod-template-hash": hash } },
                "spec": { "containers": [container(cpu)] },
            }))
        };
        assert_eq!(pod("a", "1", "1").shape, pod("b", "2", "1").shape);
        assert_ne!(pod("a", "1", "1").shape, pod("a", "1", "2").shape);
    }
}
