//! The calculator: a row for each behavior of upstream's `replica_calculator_test.go`.

use kcm_framework::api::views::{AutoscaledPod, Pod, PodPhase, PodRequests};
use kcm_framework::api::{Need, Needs, PartReader, ResourceList, ResourceQuantity, Shared, View as _};
use serde_json::json;

use super::fixtures::{TestPod, now, pod, pods, rules, samples, seconds, with_containers};
use crate::horizontal_pod_autoscaler::calculator::{
    CalculationError, Measured, ObservedPod, Proposal, Rules, Sample, Samples, Tolerances, replicas_for_average,
    replicas_for_utilization, replicas_for_value, replicas_for_value_per_pod, sum,
};

/// A target for the utilization of CPU requests.
struct Case {
    name: &'static str,
    current: i32,
    target: i32,
    pods: Vec<TestPod>,
    samples: Samples,
    /// Replicas, utilization in per cent, average usage.
    expected: Result<(i32, i32, i64), CalculationError>,
}

const CPU: Measured<'_> = Measured { resource: "cpu", container: None, pod_level: true };

fn observed(pods: &[TestPod]) -> Vec<ObservedPod<'_>> {
    pods.iter().map(TestPod::observed).collect()
}

fn check(case: Case) {
    let Case { name, current, target, pods, samples, expected } = case;
    let of_container = samples.clone();
    let proposal = replicas_for_utilization(current, target, CPU, samples, &observed(&pods), rules());
    let found = |proposal: Proposal| (proposal.replicas, proposal.utilization.unwrap_or(-1), proposal.usage);
    assert_eq!(proposal.map(found), expected, "{name}");
    // A metric of one container, beside another one in each pod.
    let measured = Measured { container: Some("main"), ..CPU };
    let pods: Vec<TestPod> = pods.into_iter().map(with_another_container).collect();
    let proposal = replicas_for_utilization(current, target, measured, of_container, &observed(&pods), rules());
    assert_eq!(proposal.map(found), expected, "{name}, of a container");
}

/// Adds a container to a pod, whose request would change every utilization.
fn with_another_container(mut pod: TestPod) -> TestPod {
    let requests = [("cpu".into(), ResourceQuantity::of_milli(7_777))].into_iter().collect();
    let containers = pod.part.requests.containers.iter().cloned().chain([("side".into(), requests)]).collect();
    pod.part.requests = Shared::new(PodRequests { containers, ..PodRequests::clone(&pod.part.requests) });
    pod
}

/// Pods of which some are changed.
fn with(mut pods: Vec<TestPod>, at: &[usize], change: impl Fn(TestPod) -> TestPod) -> Vec<TestPod> {
    for at in at {
        pods[*at] = change(pods[*at].clone());
    }
    pods
}

fn pending(pod: TestPod) -> TestPod {
    pod.phase(PodPhase::Pending)
}

#[test]
fn a_utilization_target_calls_for_as_many_pods_as_meet_it() {
    let cases = [
        Case {
            name: "scale up",
            current: 3,
            target: 30,
            pods: pods(3, 1000),
            samples: samples(&[300, 500, 700]),
            expected: Ok((5, 50, 500)),
        },
        Case {
            name: "the example of the page: five times the target",
            current: 3,
            target: 100,
            pods: pods(3, 100),
            samples: samples(&[300, 500, 700]),
            expected: Ok((15, 500, 500)),
        },
        Case {
            name: "scale down",
            current: 5,
            target: 50,
            pods: pods(5, 1000),
            samples: samples(&[100, 300, 500, 250, 250]),
            expected: Ok((3, 28, 280)),
        },
        Case {
            name: "within the tolerance",
            current: 3,
            target: 100,
            pods: pods(3, 1000),
            samples: samples(&[1010, 1030, 1020]),
            expected: Ok((3, 102, 1020)),
        },
        Case {
            name: "at the upper end of the tolerance",
            current: 3,
            target: 100,
            pods: pods(3, 1000),
            samples: samples(&[1100, 1100, 1100]),
            expected: Ok((3, 110, 1100)),
        },
        Case {
            name: "just above the tolerance",
            current: 3,
            target: 100,
            pods: pods(3, 1000),
            samples: samples(&[1110, 1110, 1110]),
            expected: Ok((4, 111, 1110)),
        },
        Case {
            name: "a superfluous sample of no pod is left out of the ratio",
            current: 4,
            target: 100,
            pods: pods(4, 500),
            samples: samples(&[9500, 9500, 9500, 9500, 9500, 9500]),
            expected: Ok((76, 1900, 9500)),
        },
        Case {
            name: "no samples",
            current: 4,
            target: 100,
            pods: pods(4, 500),
            samples: samples(&[]),
            expected: Err(CalculationError::NoSamples),
        },
        Case {
            name: "no pods",
            current: 4,
            target: 100,
            pods: vec![],
            samples: samples(&[1]),
            expected: Err(CalculationError::NoPods),
        },
        Case {
            name: "samples of other pods alone",
            current: 1,
            target: 100,
            pods: vec![pod("other", 100).phase(PodPhase::Succeeded)],
            samples: samples(&[1]),
            expected: Err(CalculationError::NoMatch),
        },
        Case {
            name: "requests of zero",
            current: 1,
            target: 100,
            pods: pods(1, 0),
            samples: samples(&[200]),
            expected: Err(CalculationError::NoMatch),
        },
    ];
    cases.into_iter().for_each(check);
}

#[test]
fn the_tolerance_has_a_lower_end_and_pods_that_have_succeeded_count() {
    let cases = [
        Case {
            name: "below the lower end of the tolerance",
            current: 10,
            target: 56,
            pods: pods(10, 1000),
            samples: samples(&[500; 10]),
            expected: Ok((9, 50, 500)),
        },
        Case {
            name: "within the lower end of the tolerance",
            current: 10,
            target: 55,
            pods: pods(10, 1000),
            samples: samples(&[500; 10]),
            expected: Ok((10, 50, 500)),
        },
        Case {
            name: "a pod that has succeeded counts by its sample",
            current: 3,
            target: 50,
            pods: with(pods(3, 1000), &[2], |pod| pod.phase(PodPhase::Succeeded)),
            samples: samples(&[600, 600, 900]),
            expected: Ok((5, 70, 700)),
        },
    ];
    cases.into_iter().for_each(check);
}

#[test]
fn pods_without_samples_use_their_request_when_scaling_down_and_nothing_when_scaling_up() {
    let cases = [
        Case {
            name: "up: a missing pod counts as zero, which leaves the direction",
            current: 3,
            target: 30,
            pods: pods(3, 1000),
            samples: samples(&[500, 700]),
            expected: Ok((4, 60, 600)),
        },
        Case {
            name: "up: missing pods that bring the ratio into the tolerance",
            current: 3,
            target: 30,
            pods: pods(3, 1000),
            samples: samples(&[450, 450]),
            expected: Ok((3, 45, 450)),
        },
        Case {
            name: "up: missing pods that would turn the direction around",
            current: 3,
            target: 50,
            pods: pods(3, 1000),
            samples: samples(&[1000]),
            expected: Ok((3, 100, 1000)),
        },
        Case {
            name: "down: a missing pod uses its whole request",
            current: 4,
            target: 50,
            pods: pods(4, 1000),
            samples: samples(&[100, 100, 100]),
            expected: Ok((3, 10, 100)),
        },
        Case {
            name: "down: a target above 100 % is used instead",
            current: 4,
            target: 200,
            pods: pods(4, 1000),
            samples: samples(&[100, 100, 100]),
            // (3 × 100 + 2000) / 4000 = 57 %, of 200 %: 0.285 × 4
            expected: Ok((2, 10, 100)),
        },
        Case {
            name: "down: missing pods that would turn the direction around",
            current: 3,
            target: 50,
            pods: pods(3, 1000),
            samples: samples(&[300]),
            expected: Ok((3, 30, 300)),
        },
        Case {
            name: "at the target: missing pods change nothing",
            current: 4,
            target: 50,
            pods: pods(4, 1000),
            samples: samples(&[500, 500]),
            expected: Ok((4, 50, 500)),
        },
        Case {
            name: "down: more pods than replicas do not scale up",
            current: 2,
            target: 60,
            pods: pods(5, 1000),
            samples: samples(&[100, 100, 100, 100]),
            // (400 + 1000) / 5000 = 28 % of 60 %: ⌈0.466 × 5⌉ = 3, more than 2
            expected: Ok((2, 10, 100)),
        },
        Case {
            name: "up: fewer pods than replicas do not scale down",
            current: 9,
            target: 30,
            pods: pods(3, 1000),
            samples: samples(&[600, 600]),
            // 1200 / 3000 = 40 % of 30 %: ⌈1.33 × 3⌉ = 4, fewer than 9
            expected: Ok((9, 60, 600)),
        },
    ];
    cases.into_iter().for_each(check);
}

#[test]
fn pods_that_are_not_ready_are_left_out_and_use_nothing_when_scaling_up() {
    let cases = [
        Case {
            name: "up: a pending pod is added with zero",
            current: 3,
            target: 30,
            pods: with(pods(3, 1000), &[0], pending),
            samples: samples(&[100, 500, 700]),
            expected: Ok((4, 60, 600)),
        },
        Case {
            name: "up: a pod that has never been ready is added with zero",
            current: 3,
            target: 30,
            pods: with(pods(3, 1000), &[0], |pod| pod.started(3600, true, 3600)),
            samples: samples(&[100, 500, 700]),
            expected: Ok((4, 60, 600)),
        },
        Case {
            name: "up: pods that are not ready turn the direction around",
            current: 3,
            target: 50,
            pods: with(pods(3, 1000), &[1, 2], pending),
            samples: samples(&[1000, 500, 700]),
            expected: Ok((3, 100, 1000)),
        },
        Case {
            name: "down: a pending pod is left out",
            current: 5,
            target: 50,
            pods: with(pods(5, 1000), &[4], pending),
            samples: samples(&[100, 300, 500, 250, 250]),
            // 1150 / 4000 = 28 %: ⌈0.56 × 4⌉
            expected: Ok((3, 28, 287)),
        },
        Case {
            name: "all are pending",
            current: 3,
            target: 30,
            pods: with(pods(3, 1000), &[0, 1, 2], pending),
            samples: samples(&[100, 500, 700]),
            expected: Err(CalculationError::NoSamples),
        },
        Case {
            name: "a pod on its way out is ignored",
            current: 2,
            target: 50,
            pods: with(pods(3, 1000), &[2], TestPod::terminating),
            samples: samples(&[700, 700, 9000]),
            expected: Ok((3, 70, 700)),
        },
        Case {
            name: "a failed pod is ignored",
            current: 2,
            target: 50,
            pods: with(pods(3, 1000), &[2], |pod| pod.phase(PodPhase::Failed)),
            samples: samples(&[700, 700, 9000]),
            expected: Ok((3, 70, 700)),
        },
        Case {
            name: "up: missing and unready pods together",
            current: 4,
            target: 50,
            pods: with(pods(4, 1000), &[0], pending),
            samples: samples(&[100, 1000, 1000]),
            // without them 100 %; with zeros 2000 / 4000 = 50 %, within the tolerance
            expected: Ok((4, 100, 1000)),
        },
        Case {
            name: "down: missing pods use their request while unready ones are left out",
            current: 4,
            target: 50,
            pods: with(pods(4, 1000), &[0], pending),
            samples: samples(&[100, 100, 100]),
            // (200 + 1000) / 3000 = 40 %: ⌈0.8 × 3⌉
            expected: Ok((3, 10, 100)),
        },
    ];
    cases.into_iter().for_each(check);
}

#[test]
fn the_cpu_usage_of_young_pods_counts_when_they_were_ready_for_a_whole_window() {
    let measured =
        |timestamp: i64| Sample { value: 1000, timestamp: Some(now() - seconds(timestamp)), window: seconds(30) };
    let mut without_start = pod("young", 1000);
    without_start.part.start_time = None;
    // A second pod that is at the target.
    let cases = [
        ("young and not ready", pod("young", 1000).started(60, true, 60), measured(0), true),
        ("young, measured before it was ready", pod("young", 1000).started(60, false, 40), measured(20), true),
        ("young, measured a window after", pod("young", 1000).started(60, false, 40), measured(10), false),
        ("young, measured in the future", pod("young", 1000).started(60, false, 40), measured(-3600), false),
        ("young, measured long ago", pod("young", 1000).started(60, false, 40), measured(86_400), true),
        ("without a condition", pod("young", 1000).without_condition(), measured(0), true),
        ("old and never ready", pod("young", 1000).started(3600, true, 3595), measured(0), true),
        ("old and not ready any more", pod("young", 1000).started(3600, true, 3580), measured(0), false),
        ("old and not ready since the delay", pod("young", 1000).started(3600, true, 3590), measured(0), false),
        ("old and not ready since before the delay", pod("young", 1000).started(3600, true, 3591), measured(0), true),
        ("without a start", without_start, measured(0), true),
        ("old, measured long ago", pod("young", 1000).started(3600, false, 60), measured(86_400), false),
        (
            "without a time of measurement",
            pod("young", 1000).started(60, false, 40),
            Sample { timestamp: None, ..measured(0) },
            true,
        ),
    ];
    for (name, young, sample, is_left_out) in cases {
        let pods = [pod("pod-0", 1000), young];
        let mut all = samples(&[500]);
        all.insert("young".into(), sample);
        let proposal = replicas_for_utilization(2, 50, CPU, all.clone(), &observed(&pods), rules()).unwrap();
        assert_eq!(proposal.utilization == Some(50), is_left_out, "{name}: {proposal:?}");
        // Of other resources the usage of every pod counts.
        let cpu = replicas_for_average(2, 500, "cpu", all.clone(), &observed(&pods), rules()).unwrap();
        assert_eq!(cpu.usage, if is_left_out { 500 } else { 750 }, "{name}: a target for the amount of CPU");
        let memory = replicas_for_average(2, 500, "memory", all, &observed(&pods), rules()).unwrap();
        assert_eq!(memory.usage, 750, "{name}");
    }
}

#[test]
fn an_average_target_counts_missing_pods_at_the_target_when_scaling_down() {
    for (name, current, target, pods, values, expected) in [
        ("up", 3, 20_000, pods(3, 0), &[20_000, 10_000, 30_000][..], (3, 20_000)),
        ("up, above the tolerance", 3, 15_000, pods(3, 0), &[20_000, 10_000, 30_000], (4, 20_000)),
        ("down", 5, 20_000, pods(5, 0), &[10_000; 5], (3, 10_000)),
        ("down: missing at the target", 4, 20_000, pods(4, 0), &[10_000, 10_000, 10_000], (3, 10_000)),
        ("down: missing bring it into the tolerance", 10, 20_000, pods(10, 0), &[10_000], (10, 10_000)),
        ("up: missing are zero", 3, 10_000, pods(3, 0), &[20_000, 20_000], (4, 20_000)),
        (
            "up: a pending pod is zero",
            3,
            15_000,
            with(pods(3, 0), &[0], pending),
            &[50_000, 10_000, 30_000],
            (3, 20_000),
        ),
        (
            "down: a pending pod is left out",
            4,
            50_000,
            with(pods(4, 0), &[0], pending),
            &[1, 10_000, 20_000, 30_000],
            (2, 20_000),
        ),
        ("at the target: missing pods change nothing", 4, 20_000, pods(4, 0), &[20_000, 20_000], (4, 20_000)),
        // (40 + 20) / 5 = 12 of 20: ⌈0.6 × 5⌉ = 3, more than 2
        ("down: more pods than replicas do not scale up", 2, 20_000, pods(5, 0), &[10_000; 4], (2, 10_000)),
        // 80 / 3 of 15: ⌈1.78 × 3⌉ = 6, fewer than 9
        ("up: fewer pods than replicas do not scale down", 9, 15_000, pods(3, 0), &[40_000, 40_000], (9, 40_000)),
        ("a sample of no pod counts, as upstream", 3, 10_000, pods(2, 0), &[10_000, 10_000, 40_000], (4, 20_000)),
    ] {
        let proposal = replicas_for_average(current, target, "", samples(values), &observed(&pods), rules()).unwrap();
        assert_eq!((proposal.replicas, proposal.usage), expected, "{name}");
        assert_eq!(proposal.utilization, None, "{name}");
    }
}

#[test]
fn a_value_target_multiplies_the_pods_that_are_ready() {
    let unready = |pod: TestPod| pod.started(3600, true, 60);
    for (name, current, value, target, pods, expected) in [
        ("up", 3, 20_000, 15_000, pods(3, 0), Ok(4)),
        ("down", 5, 12_000, 20_000, pods(5, 0), Ok(3)),
        ("within the tolerance", 3, 10_500, 10_000, pods(3, 0), Ok(3)),
        ("unready pods do not count", 3, 20_000, 15_000, with(pods(3, 0), &[0, 1], unready), Ok(2)),
        ("no pods", 3, 20_000, 15_000, vec![], Err(CalculationError::ReadyPods(Box::new(CalculationError::NoPods)))),
        ("no pods, within the tolerance", 3, 10_000, 10_000, vec![], Ok(3)),
        ("from zero: the ratio itself, without tolerance", 0, 20_500, 20_000, vec![], Ok(2)),
        ("from zero to zero", 0, 0, 20_000, vec![], Ok(0)),
        ("to zero", 3, 0, 20_000, pods(3, 0), Ok(0)),
        ("a flood", 3, i64::MAX, 1, pods(3, 0), Ok(i32::MAX)),
        ("less than nothing", 3, -20_000, 20_000, pods(3, 0), Ok(-3)),
    ] {
        let found = replicas_for_value(current, value, target, &observed(&pods), rules().tolerances);
        assert_eq!(found.clone().map(|it| it.replicas), expected, "{name}");
        assert!(found.is_err() || found.is_ok_and(|it| it.usage == value), "{name}");
    }
}

#[test]
fn a_value_per_pod_is_divided_by_the_replicas() {
    for (name, replicas, value, target, expected) in [
        ("up", 3, 8_600, 2_150, (4, 2_867)),
        ("down", 5, 8_600, 2_867, (3, 1_720)),
        ("within the tolerance", 3, 8_600, 2_767, (3, 2_867)),
        ("a flood", 3, i64::MAX, 1, (i32::MAX, i64::MAX)),
        ("a flood at a target that is one", 3, i64::MAX, i64::MAX, (1, i64::MAX)),
        ("from zero", 0, 8_600, 2_150, (4, i64::MAX)),
        ("from zero to zero", 0, 0, 2_150, (0, 0)),
        ("less than nothing", 2, -4_000, 1_000, (-4, -2_000)),
    ] {
        let Proposal { replicas: wanted, usage, utilization } =
            replicas_for_value_per_pod(replicas, value, target, rules().tolerances);
        assert_eq!((wanted, usage, utilization), (expected.0, expected.1, None), "{name}");
    }
}

#[test]
fn sums_end_at_what_their_type_holds() {
    assert_eq!(sum(&[1, 2, 3]), 6);
    assert_eq!(sum(&[i64::MAX, 1]), i64::MAX);
    assert_eq!(sum(&[i64::MIN, -1]), i64::MIN);
    assert_eq!(sum(&[i64::MAX, i64::MAX, i64::MIN]), i64::MAX - 1, "only the sum counts");
    for (values, replicas) in [(&[i64::MAX; 3], i32::MAX), (&[i64::MIN; 3], i32::MIN)] {
        let found = replicas_for_utilization(3, 50, CPU, samples(values), &observed(&pods(3, 1)), rules()).unwrap();
        assert_eq!(found.utilization, Some(replicas), "it does not wrap around");
        assert_eq!(found.replicas.signum(), replicas.signum());
        let found = replicas_for_average(3, 1, "", samples(values), &observed(&pods(3, 1)), rules()).unwrap();
        assert_eq!(found.replicas, replicas);
    }
}

#[test]
fn tolerances_apply_to_each_direction() {
    let rules = Rules { tolerances: Tolerances { down: 0.5, up: 0.0 }, ..rules() };
    for (name, values, expected) in [
        ("any more scales up", [510, 510], 3),
        ("much less does not scale down", [260, 260], 2),
        ("less than half does", [200, 200], 1),
    ] {
        let found = replicas_for_utilization(2, 50, CPU, samples(&values), &observed(&pods(2, 1000)), rules).unwrap();
        assert_eq!(found.replicas, expected, "{name}");
        let found = replicas_for_average(2, 500, "cpu", samples(&values), &observed(&pods(2, 1000)), rules).unwrap();
        assert_eq!(found.replicas, expected, "{name}, of an average");
        let [value, _] = values;
        let found = replicas_for_value(2, value, 500, &observed(&pods(2, 1000)), rules.tolerances).unwrap();
        assert_eq!(found.replicas, expected, "{name}, of a value");
        let found = replicas_for_value_per_pod(2, 2 * value, 500, rules.tolerances);
        assert_eq!(found.replicas, expected, "{name}, of a value per pod");
    }
}

fn list(quantities: &[(&str, &str)]) -> ResourceList {
    let quantity = |text: &str| text.parse::<ResourceQuantity>().expect("it is a quantity");
    quantities.iter().map(|(name, text)| ((*name).into(), quantity(text))).collect()
}

#[test]
fn requests_are_those_of_the_containers_of_the_pod_or_of_one_container() {
    let plain = with_containers("pod-0", vec![("a", list(&[("cpu", "1")])), ("b", list(&[("cpu", "500m")]))]);
    let mut as_a_whole = plain.clone();
    let pod_level = Some(list(&[("cpu", "3")]));
    as_a_whole.part.requests = Shared::new(PodRequests { pod_level, ..PodRequests::clone(&plain.part.requests) });
    let incomplete = with_containers("pod-0", vec![("a", list(&[("cpu", "1")])), ("b", list(&[]))]);
    let cpu = |container, pod_level| Measured { resource: "cpu", container, pod_level };
    let missing = |container: &str| CalculationError::NoRequest {
        resource: "cpu".to_owned(),
        container: container.to_owned(),
        pod: "pod-0".to_owned(),
    };
    let of_pod = CalculationError::NoPodRequest { resource: "memory".to_owned(), pod: "pod-0".to_owned() };
    let memory = Measured { resource: "memory", container: None, pod_level: true };
    let not_found = CalculationError::NoContainer { container: "c".to_owned(), pod: "pod-0".to_owned() };
    for (name, pod, measured, expected) in [
        ("all containers", &plain, cpu(None, true), Ok(100)),
        ("one container", &plain, cpu(Some("b"), true), Ok(300)),
        ("the pod as a whole", &as_a_whole, cpu(None, true), Ok(50)),
        ("a container goes before the pod as a whole", &as_a_whole, cpu(Some("a"), true), Ok(150)),
        ("without the gate", &as_a_whole, cpu(None, false), Ok(100)),
        ("a container without a request", &incomplete, cpu(None, true), Err(missing("b"))),
        ("another container than the one without", &incomplete, cpu(Some("a"), true), Ok(150)),
        ("an unknown container", &plain, cpu(Some("c"), true), Err(not_found)),
        ("not requested by the pod as a whole", &as_a_whole, memory, Err(of_pod)),
    ] {
        let found = replicas_for_utilization(1, 100, measured, samples(&[1500]), &[pod.observed()], rules());
        assert_eq!(found.map(|it| it.utilization), expected.map(Some), "{name}");
    }
}

#[test]
fn sidecars_count_beside_the_containers_and_init_containers_that_end_do_not() {
    let container = |name: &str, cpu: &str| json!({ "name": name, "resources": { "requests": { "cpu": cpu } } });
    let mut sidecar = container("sidecar", "50m");
    sidecar["restartPolicy"] = json!("Always");
    let object = json!({
        "metadata": { "namespace": "shop", "name": "pod-0" },
        "spec": { "containers": [container("main", "100m")], "initContainers": [container("init", "20m"), sidecar] },
    });
    let pod = Pod::decode(&object.to_string()).expect("it is a pod");
    let reader: PartReader<AutoscaledPod> =
        [Need::part::<AutoscaledPod>()].into_iter().collect::<Needs>().reader().expect("it is declared");
    let part = reader.of(&pod);
    let requests = &part.requests.containers;
    let found: Vec<(&str, i64)> =
        requests.iter().map(|(name, list)| (&**name, list.get("cpu").map_or(0, ResourceQuantity::to_milli))).collect();
    assert_eq!(found, [("main", 100), ("sidecar", 50)]);
}

#[test]
fn errors_have_upstreams_messages() {
    let no_request = CalculationError::NoRequest { resource: "cpu".into(), container: "c".into(), pod: "p".into() };
    for (error, message) in [
        (no_request, "missing request for cpu in container c of Pod p"),
        (
            CalculationError::NoPodRequest { resource: "cpu".into(), pod: "p".into() },
            "missing pod-level request for cpu in Pod p",
        ),
        (CalculationError::NoContainer { container: "c".into(), pod: "p".into() }, "container c not found in Pod p"),
        (CalculationError::NoSamples, "did not receive metrics for targeted pods (pods might be unready)"),
        (
            CalculationError::ReadyPods(Box::new(CalculationError::NoPods)),
            "unable to calculate ready pods: no pods returned by selector while calculating replica count",
        ),
    ] {
        assert_eq!(error.to_string(), message);
    }
}
