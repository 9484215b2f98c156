//! The steps of flex volumes.

use serde_json::json;

use super::{claim, volume};
use crate::persistentvolume_expander::flex::{Step, step};

/// Request, capacity, progress and allocated size of the claim; capacity of the volume, and whether it keeps the old one.
struct Row {
    name: &'static str,
    claim: (&'static str, &'static str, Option<&'static str>, Option<&'static str>),
    volume: (&'static str, Option<&'static str>),
    expected: Step,
}

fn expand(to: &str) -> Step {
    Step::Expand { to: to.parse().unwrap() }
}

#[test]
fn xp_7_the_objects_decide_the_next_step() {
    const IN_PROGRESS: Option<&str> = Some("ControllerResizeInProgress");
    const INFEASIBLE: Option<&str> = Some("ControllerResizeInfeasible");
    const PENDING: Option<&str> = Some("NodeResizePending");
    const ON_NODE: Option<&str> = Some("NodeResizeInProgress");
    const FAILED_ON_NODE: Option<&str> = Some("NodeResizeInfeasible");
    let row = |name, claim, volume, expected| Row { name, claim, volume, expected };
    let (two, three) = (Some("2Gi"), Some("3Gi"));
    let rows = [
        row("a new request", ("2Gi", "1Gi", None, None), ("1Gi", None), expand("2Gi")),
        row("a new request after a failure", ("2Gi", "1Gi", INFEASIBLE, three), ("1Gi", None), expand("2Gi")),
        row("a request that is raised amid", ("3Gi", "1Gi", IN_PROGRESS, two), ("1Gi", None), expand("2Gi")),
        row("a request that is lowered amid", ("2Gi", "1Gi", IN_PROGRESS, three), ("1Gi", None), expand("3Gi")),
        row("a request that is raised before the kubelet", ("3Gi", "1Gi", PENDING, two), ("2Gi", None), expand("2Gi")),
        row("the same, amid the kubelet", ("3Gi", "1Gi", ON_NODE, two), ("2Gi", None), expand("2Gi")),
        row("the same, the kubelet has failed", ("3Gi", "1Gi", FAILED_ON_NODE, two), ("2Gi", None), expand("2Gi")),
        row("no recorded size", ("3Gi", "1Gi", ON_NODE, None), ("2Gi", None), expand("3Gi")),
        row("a progress that is not known", ("3Gi", "1Gi", Some("Other"), two), ("2Gi", None), expand("3Gi")),
        row("the kubelet is next", ("2Gi", "1Gi", PENDING, two), ("2Gi", Some("1Gi")), Step::Wait),
        row("the kubelet expands", ("2Gi", "1Gi", ON_NODE, two), ("2Gi", Some("1Gi")), Step::Wait),
        row("the kubelet has failed", ("2Gi", "1Gi", FAILED_ON_NODE, two), ("2Gi", Some("1Gi")), Step::Pend),
        row("the volume has grown, no more", ("2Gi", "1Gi", IN_PROGRESS, two), ("2Gi", None), expand("2Gi")),
        row("the same, the claim was lowered", ("2Gi", "1Gi", INFEASIBLE, three), ("3Gi", None), expand("3Gi")),
        row("a size without a progress", ("2Gi", "1Gi", None, three), ("3Gi", None), expand("3Gi")),
        row("a volume that was large", ("2Gi", "1Gi", None, None), ("9Gi", None), expand("2Gi")),
        row("the kubelet has finished", ("2Gi", "2Gi", None, None), ("2Gi", Some("1Gi")), Step::Finish),
        row("the volume is larger still", ("2Gi", "2Gi", None, None), ("3Gi", Some("1Gi")), expand("2Gi")),
    ];
    for Row { name, claim: (request, capacity, progress, allocated), volume: (size, before), expected } in rows {
        let mut status = json!({ "phase": "Bound", "capacity": { "storage": capacity } });
        if let Some(progress) = progress {
            status["allocatedResourceStatuses"] = json!({ "storage": progress });
        }
        if let Some(allocated) = allocated {
            status["allocatedResources"] = json!({ "storage": allocated });
        }
        let volume = volume(size, before, &json!({ "flexVolume": { "driver": "vendor/driver" } }));
        assert_eq!(step(&claim(request, &status), &volume), expected, "{name}");
    }
}
