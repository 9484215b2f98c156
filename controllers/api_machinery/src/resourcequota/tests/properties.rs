//! Usage equals a naive sum.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{GATES, pod, used};
use crate::resourcequota::evaluator::Evaluator;
use crate::resourcequota::observe::Content;

#[derive(Debug, Clone)]
struct Generated {
    millicores: u16,
    mebibytes: u16,
    phase: &'static str,
    has_deadline: bool,
}

fn generated() -> impl Strategy<Value = Generated> {
    let phase = prop::sample::select(vec!["Pending", "Running", "Succeeded", "Failed", "Unknown"]);
    (any::<u16>(), any::<u16>(), phase, any::<bool>()).prop_map(|(millicores, mebibytes, phase, has_deadline)| {
        Generated { millicores, mebibytes, phase, has_deadline }
    })
}

proptest! {
    #[test]
    fn usage_of_pods_equals_a_naive_sum(
        pods in prop::collection::vec(generated(), 0..40),
        scope in prop::sample::select(vec![None, Some("Terminating"), Some("NotTerminating")]),
    ) {
        let object = |(number, generated): (usize, &Generated)| {
            let requests = json!({
                "cpu": format!("{}m", generated.millicores), "memory": format!("{}Mi", generated.mebibytes),
            });
            let mut spec = json!({ "containers": [{ "name": "main", "resources": { "requests": requests } }] });
            if generated.has_deadline {
                spec["activeDeadlineSeconds"] = json!(60);
            }
            pod(&format!("pod-{number:02}"), &spec, &json!({ "phase": generated.phase }))
        };
        let content = Content::Pods(pods.iter().enumerate().map(object).collect());
        let spec = scope.map_or_else(|| json!({}), |scope| json!({ "scopes": [scope] }));
        let constraints = ["count/pods", "pods", "requests.cpu", "requests.memory"];
        let found = used(&constraints, spec, Evaluator::Pods, content, GATES);

        let in_scope: Vec<&Generated> = pods
            .iter()
            .filter(|pod| scope.is_none_or(|scope| (scope == "Terminating") == pod.has_deadline))
            .collect();
        let running: Vec<_> = in_scope.iter().filter(|pod| !["Succeeded", "Failed"].contains(&pod.phase)).collect();
        let millicores: u64 = running.iter().map(|pod| u64::from(pod.millicores)).sum();
        let bytes: u64 = running.iter().map(|pod| u64::from(pod.mebibytes) << 20).sum();
        let value = |index: usize| -> kcm_framework::api::Quantity {
            let (_, quantity) = found[index].split_once('=').expect("it has a quantity");
            quantity.parse().expect("it is a quantity")
        };
        let expected = [
            in_scope.len().to_string(), running.len().to_string(), format!("{millicores}m"), bytes.to_string(),
        ];
        for (index, expected) in expected.iter().enumerate() {
            prop_assert_eq!(value(index), expected.parse().expect("it is a quantity"), "{}", constraints[index]);
        }
    }

    #[test]
    fn a_written_status_is_not_written_again(counts in prop::collection::vec(0_usize..1000, 1..5)) {
        let name = |number: usize| format!("count/kind{number}.example.com");
        let hard: serde_json::Map<String, Value> = (0..counts.len()).map(|number| (name(number), json!("7"))).collect();
        let content = |number: usize| {
            let of_group = kcm_framework::api::Resource::namespaced("example.com", "v1", "", "Kind");
            let resource = kcm_framework::api::Resource { plural: format!("kind{number}").into(), ..of_group };
            (Evaluator::Objects(crate::resourcequota::evaluator::ObjectCount::of(&resource)), Content::Objects(counts[number]))
        };
        let observed = || crate::resourcequota::observe::Observed {
            content: (0..counts.len()).map(content).collect(),
            classes: crate::resourcequota::evaluator::resource_claims::DeviceClasses::default(),
        };
        let spec = json!({ "hard": hard });
        let first = super::plan_of(&super::quota(&spec, &Value::Null), &observed(), GATES);
        let crate::resourcequota::plan::Action::Update(used) = first.action else { panic!("a new quota is written") };
        let status = json!({ "hard": hard, "used": used });
        let again = super::plan_of(&super::quota(&spec, &status), &observed(), GATES);
        prop_assert_eq!(again.action, crate::resourcequota::plan::Action::Keep);
    }
}
