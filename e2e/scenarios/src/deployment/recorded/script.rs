//! The script: twelve deployments of four pods with five changes each.

use serde_json::{Value, json};

/// A deployment's name and its changes.
pub(super) type Part = (&'static str, [Step; CHANGES_EACH]);

/// How many changes each deployment sees.
pub(super) const CHANGES_EACH: usize = 5;

/// A change, and how many of the pods that wait after it run before the next change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) change: Change,
    pub(super) pods: usize,
}

/// A change to a deployment.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    Image(u64),
    Env(u64),
    Restart(u64),
    Scale(u64),
    Pause,
    Resume,
    /// A rollback to a revision by the annotation that the controller reads; 0 is the previous one.
    Undo(u64),
    Recreate,
    /// A rolling update with these `maxSurge` and `maxUnavailable`.
    Budget(&'static str, &'static str),
    Label(u64),
    Annotation(u64),
    HistoryLimit(u64),
    /// The largest number means no deadline.
    ProgressDeadline(i32),
    MinReadySeconds(u64),
}

use Change::{
    Annotation, Budget, Env, HistoryLimit, Image, Label, MinReadySeconds, Pause, ProgressDeadline, Recreate, Restart,
    Resume, Scale, Undo,
};

/// The next change comes when all pods of this one run.
const fn through(change: Change) -> Step {
    Step { change, pods: usize::MAX }
}

/// The next change comes when so many more pods run.
const fn after(pods: usize, change: Change) -> Step {
    Step { change, pods }
}

pub(super) static SCRIPT: [Part; 12] = [
    ("rolls", [through(Budget("1", "0")), through(Image(2)), through(Env(1)), through(Restart(1)), through(Image(3))]),
    ("rolls-over", [after(1, Image(2)), after(1, Image(3)), after(2, Image(4)), after(1, Image(1)), through(Label(1))]),
    (
        "scales-in-proportion",
        [through(Budget("2", "1")), after(2, Image(2)), after(0, Scale(9)), after(1, Scale(3)), through(Annotation(1))],
    ),
    ("pauses-midway", [after(1, Image(2)), after(0, Pause), after(1, Scale(6)), after(0, Image(3)), through(Resume)]),
    // There is no ninth revision, and the fourth is the newest.
    ("goes-back", [through(Image(2)), through(Undo(0)), through(Undo(2)), through(Undo(9)), through(Undo(4))]),
    (
        "goes-back-midway",
        [after(1, Image(2)), after(0, Undo(0)), through(Annotation(1)), after(2, Image(3)), through(Undo(2))],
    ),
    ("recreates", [through(Recreate), after(2, Image(2)), after(1, Image(3)), through(Scale(2)), through(Undo(0))]),
    (
        "takes-percentages",
        [
            through(Budget("50%", "25%")),
            through(Image(2)),
            through(Budget("0%", "30%")),
            through(Image(3)),
            through(Scale(1)),
        ],
    ),
    (
        "keeps-little",
        [through(HistoryLimit(1)), through(Image(2)), through(Image(3)), through(HistoryLimit(0)), through(Image(4))],
    ),
    (
        "waits-for-availability",
        [
            through(MinReadySeconds(1)),
            through(Image(2)),
            through(MinReadySeconds(0)),
            through(Scale(5)),
            through(Restart(1)),
        ],
    ),
    (
        "has-no-deadline",
        [
            through(ProgressDeadline(i32::MAX)),
            after(1, Image(2)),
            after(0, Pause),
            after(0, ProgressDeadline(900)),
            through(Resume),
        ],
    ),
    ("sleeps", [through(Scale(0)), through(Image(2)), through(Label(1)), through(Scale(3)), through(Annotation(1))]),
];

impl Change {
    /// As a strategic merge patch.
    pub(super) fn patch(self) -> Value {
        match self {
            Image(tag) => super::super::image(tag),
            Env(value) => {
                let container = json!({ "name": "main", "env": [{ "name": "COLOUR", "value": value.to_string() }] });
                json!({ "spec": { "template": { "spec": { "containers": [container] } } } })
            }
            Restart(second) => {
                let at = json!({ "kubectl.kubernetes.io/restartedAt": format!("2026-01-01T00:00:0{second}Z") });
                json!({ "spec": { "template": { "metadata": { "annotations": at } } } })
            }
            Scale(replicas) => json!({ "spec": { "replicas": replicas } }),
            Pause => json!({ "spec": { "paused": true } }),
            Resume => json!({ "spec": { "paused": false } }),
            Undo(revision) => {
                json!({ "metadata": { "annotations": { "deprecated.deployment.rollback.to": revision.to_string() } } })
            }
            Recreate => json!({ "spec": { "strategy": { "type": "Recreate", "rollingUpdate": null } } }),
            Budget(surge, unavailable) => {
                let [surge, unavailable] =
                    [surge, unavailable].map(|it| it.parse::<u32>().map_or_else(|_| json!(it), |number| json!(number)));
                let update = json!({ "maxSurge": surge, "maxUnavailable": unavailable });
                json!({ "spec": { "strategy": { "type": "RollingUpdate", "rollingUpdate": update } } })
            }
            Label(value) => json!({ "metadata": { "labels": { "example.com/part": value.to_string() } } }),
            Annotation(value) => json!({ "metadata": { "annotations": { "example.com/note": value.to_string() } } }),
            HistoryLimit(limit) => json!({ "spec": { "revisionHistoryLimit": limit } }),
            ProgressDeadline(seconds) => json!({ "spec": { "progressDeadlineSeconds": seconds } }),
            MinReadySeconds(seconds) => json!({ "spec": { "minReadySeconds": seconds } }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};
    use std::mem::discriminant;

    use super::SCRIPT;

    #[test]
    fn sixty_changes_are_of_every_kind() {
        let changes: Vec<_> = SCRIPT.iter().flat_map(|(_, steps)| steps).map(|step| step.change).collect();
        assert_eq!(changes.len(), 60);
        let kinds: HashSet<_> = changes.iter().map(discriminant).collect();
        assert_eq!(kinds.len(), 14);
        let names: BTreeSet<_> = SCRIPT.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), SCRIPT.len());
    }
}
