//! Pod failure policies and success policies.

use serde_json::{Value, json};

use super::fixtures::{PodBuilder, indexed, job, pod};
use crate::job::failure_policy::{PodFailure, pod_failure};
use crate::job::indexes::Indexes;
use crate::job::success_policy::met_rule;

fn codes(action: &str, operator: &str, values: &[i32]) -> Value {
    json!({ "action": action, "onExitCodes": { "operator": operator, "values": values } })
}

fn conditions(action: &str, type_: &str) -> Value {
    json!({ "action": action, "onPodConditions": [{ "type": type_, "status": "True" }] })
}

#[test]
fn the_first_rule_that_matches_a_failed_pod_decides() {
    let of_container = |name: &str| json!({ "action": "Ignore", "onExitCodes": { "containerName": name, "operator": "In", "values": [7] } });
    let seven = || pod("a").phase("Failed").exited(7, 5);
    let disrupted = || pod("a").phase("Failed").condition("DisruptionTarget");
    let inits = json!([{ "name": "setup", "state": { "terminated": { "exitCode": 9 } } }]);
    let fail = |message: &str| PodFailure::FailJob { message: message.to_owned() };
    for (name, rules, pod, expected) in [
        ("no rules", json!([]), seven(), PodFailure::Unmatched),
        ("a code", json!([codes("Ignore", "In", &[6, 7])]), seven(), PodFailure::Ignore),
        ("no other code", json!([codes("Ignore", "NotIn", &[6])]), seven(), PodFailure::Ignore),
        ("another code", json!([codes("Ignore", "NotIn", &[7])]), seven(), PodFailure::Unmatched),
        ("an unknown operator", json!([codes("Ignore", "Near", &[7])]), seven(), PodFailure::Unmatched),
        ("of a container", json!([of_container("main")]), seven(), PodFailure::Ignore),
        ("of another container", json!([of_container("side")]), seven(), PodFailure::Unmatched),
        (
            "0 matches nothing",
            json!([codes("Ignore", "NotIn", &[7])]),
            pod("a").phase("Failed").exited(0, 5),
            PodFailure::Unmatched,
        ),
        (
            "the first of two",
            json!([codes("Count", "In", &[7]), codes("Ignore", "In", &[7])]),
            seven(),
            PodFailure::Count,
        ),
        (
            "an unknown action is passed over",
            json!([codes("Explode", "In", &[7]), codes("FailIndex", "In", &[7])]),
            seven(),
            PodFailure::FailIndex,
        ),
        (
            "an init container",
            json!([codes("Count", "In", &[9])]),
            seven().with("/status", "initContainerStatuses", inits),
            PodFailure::Count,
        ),
        ("a condition", json!([conditions("Ignore", "DisruptionTarget")]), disrupted(), PodFailure::Ignore),
        ("another condition", json!([conditions("Ignore", "ConfigIssue")]), disrupted(), PodFailure::Unmatched),
        (
            "the job fails by a code",
            json!([conditions("Ignore", "X"), codes("FailJob", "In", &[7])]),
            seven(),
            fail("Container main for pod shop/a failed with exit code 7 matching FailJob rule at index 1"),
        ),
        (
            "the job fails by a condition",
            json!([conditions("FailJob", "DisruptionTarget")]),
            disrupted(),
            fail("Pod shop/a has condition DisruptionTarget matching FailJob rule at index 0"),
        ),
    ] {
        let (job, pod): (_, PodBuilder) = (job().failure_rules(rules).build(), pod);
        assert_eq!(pod_failure(&job, &pod.build()), expected, "{name}");
    }
    assert_eq!(pod_failure(&job().build(), &seven().build()), PodFailure::Unmatched);
}

#[test]
fn only_an_ignored_failure_is_not_counted_and_metrics_have_the_action() {
    let job = PodFailure::FailJob { message: String::new() };
    let all = [PodFailure::Unmatched, PodFailure::Count, PodFailure::Ignore, PodFailure::FailIndex, job];
    assert_eq!(all.each_ref().map(PodFailure::is_counted), [true, true, false, true, true]);
    let actions = [None, Some("Count"), Some("Ignore"), Some("FailIndex"), Some("FailJob")];
    assert_eq!(all.each_ref().map(PodFailure::action), actions);
}

#[test]
fn a_success_policy_is_met_by_its_first_rule_that_is() {
    let indexes = |text: &str| json!({ "succeededIndexes": text });
    let both = |text: &str, count: i32| json!({ "succeededIndexes": text, "succeededCount": count });
    for (name, rules, succeeded, expected) in [
        ("nothing has succeeded", json!([{ "succeededCount": 0 }]), "", None),
        ("too few", json!([{ "succeededCount": 3 }]), "0,1", None),
        ("enough", json!([{ "succeededCount": 2 }]), "0,5", Some(0)),
        ("not all named", json!([indexes("0,2-4")]), "0,2,3", None),
        ("all named, and others", json!([indexes("0,2-4")]), "0-7", Some(0)),
        ("not enough of the named", json!([both("0-3", 2)]), "0,4-8", None),
        ("enough of the named", json!([both("0-3", 2)]), "1,3,8", Some(0)),
        ("the second rule", json!([indexes("9"), { "succeededCount": 1 }]), "4", Some(1)),
        ("a rule that cannot be read", json!([indexes("a-b")]), "0-9", None),
        ("a rule without criteria", json!([{}]), "0-9", None),
    ] {
        let job = indexed(10).spec("successPolicy", json!({ "rules": rules })).build();
        assert_eq!(met_rule(&job, &Indexes::parse(succeeded, 10)), expected, "{name}");
    }
}
