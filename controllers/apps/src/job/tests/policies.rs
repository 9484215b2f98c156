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
    let exited = |ended: &[(&str, i32)]| {
        let container =
            |(name, code): &(&str, i32)| json!({ "name": name, "state": { "terminated": { "exitCode": code } } });
        pod("a").phase("Failed").with("/status", "containerStatuses", ended.iter().map(container).collect())
    };
    let with_status =
        |status: &str| json!({ "action": "Ignore", "onPodConditions": [{ "type": "ConfigIssue", "status": status }] });
    let resumed = |status: &str| {
        pod("a").phase("Failed").with("/status", "conditions", json!([{ "type": "ConfigIssue", "status": status }]))
    };
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
        ("a negative code", json!([codes("Ignore", "In", &[-5])]), exited(&[("main", -5)]), PodFailure::Ignore),
        (
            "a container that succeeded beside one that failed",
            json!([codes("Ignore", "NotIn", &[111])]),
            exited(&[("main", 0), ("side", 111)]),
            PodFailure::Unmatched,
        ),
        (
            "the code of the second container",
            json!([codes("Ignore", "In", &[111])]),
            exited(&[("main", 0), ("side", 111)]),
            PodFailure::Ignore,
        ),
        ("counted by a condition", json!([conditions("Count", "DisruptionTarget")]), disrupted(), PodFailure::Count),
        (
            "an index fails by a condition",
            json!([conditions("FailIndex", "DisruptionTarget")]),
            disrupted(),
            PodFailure::FailIndex,
        ),
        (
            "an unknown action by a condition is passed over",
            json!([conditions("Explode", "DisruptionTarget"), conditions("Ignore", "DisruptionTarget")]),
            disrupted(),
            PodFailure::Ignore,
        ),
        ("a condition that is false", json!([with_status("False")]), resumed("False"), PodFailure::Ignore),
        ("a condition that is unknown", json!([with_status("Unknown")]), resumed("Unknown"), PodFailure::Ignore),
        ("false is wanted, and it is true", json!([with_status("False")]), resumed("True"), PodFailure::Unmatched),
        ("true is wanted, and it is false", json!([with_status("True")]), resumed("False"), PodFailure::Unmatched),
        ("true is wanted, and it is unknown", json!([with_status("True")]), resumed("Unknown"), PodFailure::Unmatched),
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
        ("the first of two that are met", json!([indexes("0,1"), indexes("5")]), "0-2,4-7", Some(0)),
        ("of the named, enough within an interval", json!([both("3-6", 2)]), "0-2,4-7", Some(0)),
        ("of the named, one within an interval", json!([both("3-6", 2)]), "0-2,6,7", None),
        ("the named are part of two intervals", json!([indexes("2-4,6-8")]), "1-9", Some(0)),
        ("the named are all that succeeded", json!([indexes("2-4,6-9")]), "2-4,6-9", Some(0)),
        ("the named begin within intervals", json!([indexes("2-4,8,9")]), "2-5,7-9", Some(0)),
        ("named indexes beyond the completions", json!([indexes("10-12,14-16")]), "1-3,5-7", None),
        ("the named begin before each interval", json!([indexes("1-3,5-7")]), "2-4,6-8", None),
        ("and enough succeeded", json!([both("1-3,5-7", 4)]), "2-4,6-8", Some(0)),
        ("the named end after each interval", json!([indexes("2-4,6-9")]), "1-3,5-7", None),
        ("and enough have", json!([both("2-4,6-9", 4)]), "1-3,5-7", Some(0)),
        ("the named enclose each interval", json!([indexes("0-4,6-9")]), "1-3,7,8", None),
        ("and enough are enclosed", json!([both("0-4,6-9", 5)]), "1-3,7,8", Some(0)),
        ("one named interval spans two", json!([indexes("0-6,8,9")]), "1-3,5-9", None),
        ("and enough of it have", json!([both("0-6,8,9", 7)]), "1-3,5-9", Some(0)),
        ("one interval begins too late and one is equal", json!([indexes("0-5,7-9")]), "1-5,7-9", None),
        ("and enough of both", json!([both("0-5,7-9", 8)]), "1-5,7-9", Some(0)),
        ("two named intervals in one", json!([indexes("0-3,6-9")]), "1-9", None),
        ("and enough of the two", json!([both("0-3,6-9", 7)]), "1-9", Some(0)),
        ("no index is named", json!([indexes("")]), "1-3", None),
        ("no index is named, and none succeeded", json!([indexes("")]), "", None),
        ("a rule that cannot be read", json!([indexes("a-b")]), "0-9", None),
        ("a rule without criteria", json!([{}]), "0-9", None),
    ] {
        let job = indexed(10).spec("successPolicy", json!({ "rules": rules })).build();
        assert_eq!(met_rule(&job, &Indexes::parse(succeeded, 10)), expected, "{name}");
    }
}
