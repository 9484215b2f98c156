//! Event mapping.

use std::sync::Arc;

use kcm_framework::Enqueue;
use kcm_framework::api::views::{Job, Pod};
use kcm_framework::api::{ObjectKey, Uid};
use kcm_framework::informers::Change;
use kcm_framework::ownership::OwnerLister;
use serde_json::json;

use super::fixtures::{JobBuilder, PodBuilder, condition, job, pod};
use crate::job::event_mapping::{
    BATCH_PERIOD, CountingJobs, JobLister, OrphanKey, key_for_job, keys_for_pod, orphan_of_pod, orphans_of_job, owners,
};

fn sum() -> ObjectKey {
    ObjectKey::namespaced("shop", "sum")
}

/// Jobs, of which one may not be decodable.
#[derive(Clone)]
struct Jobs {
    decoded: Vec<Arc<Job>>,
    undecodable: Option<(ObjectKey, Uid)>,
}

impl Jobs {
    fn decoded(jobs: &[JobBuilder]) -> Self {
        Self { decoded: jobs.iter().map(|job| Arc::new(job.build())).collect(), undecodable: None }
    }
}

impl OwnerLister<Job> for Jobs {
    fn get(&self, key: &ObjectKey) -> Option<Arc<Job>> {
        OwnerLister::get(&self.decoded, key)
    }

    fn in_namespace(&self, namespace: &str) -> Vec<Arc<Job>> {
        OwnerLister::in_namespace(&self.decoded, namespace)
    }
}

impl JobLister for Jobs {
    fn is_undecodable(&self, job: &ObjectKey, uid: &Uid) -> bool {
        self.undecodable.as_ref().is_some_and(|(key, other)| key == job && other == uid)
    }
}

fn finished() -> JobBuilder {
    job().status("conditions", json!([condition("Complete", "True", "Reason")]))
}

fn updated(old: &JobBuilder, new: &JobBuilder) -> Change<Job> {
    Change::Updated { old: Arc::new(old.build()), new: Arc::new(new.build()) }
}

#[test]
fn a_job_is_reconciled_at_once_when_its_spec_changes_and_later_when_its_status_does() {
    let at_once = Some(Enqueue::from(sum()));
    for (name, change, expected) in [
        ("added", Change::Added(Arc::new(job().build())), at_once.clone()),
        ("deleted", Change::Deleted { last: Arc::new(job().build()), final_state_known: true }, at_once.clone()),
        ("another spec", updated(&job(), &job().metadata("generation", json!(2))), at_once),
        (
            "another status",
            updated(&job(), &job().status("active", json!(1))),
            Some(Enqueue::after(sum(), BATCH_PERIOD)),
        ),
        ("finished", updated(&job(), &finished()), None),
    ] {
        assert_eq!(key_for_job(&change), expected, "{name}");
    }
}

#[test]
fn a_pod_enqueues_its_job_or_those_that_select_it() {
    let jobs = || vec![Arc::new(job().build())];
    let keys = |pod: &PodBuilder| keys_for_pod(&Change::Added(pod.view()), &owners(jobs()), |_| false);
    let later = vec![Enqueue::after(sum(), BATCH_PERIOD)];
    let orphan = pod("a").with("/metadata", "ownerReferences", json!([]));
    assert_eq!(keys(&pod("a")), later);
    assert_eq!(keys(&orphan), later);
    assert_eq!(keys(&orphan.with("/metadata", "labels", json!({ "app": "other" }))), []);
}

#[test]
fn a_pod_that_succeeds_as_the_last_of_its_job_enqueues_it_at_once() {
    let keys = |old: &PodBuilder, new: &PodBuilder, others: &[PodBuilder]| {
        let has_unfinished = |_: &Uid| others.iter().any(|pod| !pod.view().is_finished());
        let change = Change::Updated { old: old.view(), new: new.view() };
        keys_for_pod(&change, &owners(vec![Arc::new(job().build())]), has_unfinished)
    };
    let (running, succeeded) = (|| pod("a").phase("Running"), || pod("a").succeeded(0));
    let (at_once, later) = (vec![Enqueue::from(sum())], vec![Enqueue::after(sum(), BATCH_PERIOD)]);
    for (name, old, new, others, expected) in [
        ("the only one", running(), succeeded(), vec![], &at_once),
        ("the last one", running(), succeeded(), vec![pod("b").failed(1)], &at_once),
        ("not the last one", running(), succeeded(), vec![pod("b").phase("Pending")], &later),
        ("failed", running(), pod("a").failed(0), vec![], &later),
        ("succeeded before", succeeded(), succeeded().counted(), vec![], &later),
    ] {
        assert_eq!(keys(&old, &new, &others), *expected, "{name}");
    }
}

#[test]
fn pods_are_orphans_that_no_job_will_count() {
    let key = Some(OrphanKey::Pod(ObjectKey::namespaced("shop", "a")));
    let external = || finished().spec("managedBy", json!("example.com/queue"));
    let without_owner = || pod("a").with("/metadata", "ownerReferences", json!([]));
    let of_kind = |kind: &str| {
        let owner = json!({ "apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": "x", "controller": true });
        pod("a").with("/metadata", "ownerReferences", json!([owner])).terminating()
    };
    for (name, jobs, pod, expected) in [
        ("without owner", vec![job()], without_owner(), key.clone()),
        ("without owner and finalizer", vec![job()], without_owner().counted(), None),
        ("terminating, of a job that runs", vec![job()], pod("a").terminating(), None),
        ("terminating, of a job that is gone", vec![], pod("a").terminating(), key.clone()),
        ("of a job that is gone", vec![], pod("a"), None),
        ("terminating, of a finished job", vec![finished()], pod("a").terminating(), key.clone()),
        ("of a job that had finished before this manager began", vec![finished()], pod("a"), key),
        ("of a job that another controller manages", vec![external()], pod("a").terminating(), None),
        ("of a replica set", vec![], of_kind("ReplicaSet"), None),
    ] {
        let change: Change<Pod> = Change::Added(pod.view());
        assert_eq!(orphan_of_pod(&change, &CountingJobs::of(Jobs::decoded(&jobs))), expected, "{name}");
    }
    // The event of the job enqueues its pods.
    let change = Change::Updated { old: pod("a").view(), new: pod("a").view() };
    assert_eq!(orphan_of_pod(&change, &CountingJobs::of(Jobs::decoded(&[finished()]))), None);
}

#[test]
fn the_pods_of_a_job_that_cannot_be_decoded_are_no_orphans() {
    let (added, updated) = (
        |pod: PodBuilder| Change::Added(pod.view()),
        |pod: PodBuilder| Change::Updated { old: pod.view(), new: pod.view() },
    );
    let all = Some(OrphanKey::PodsOf { job: sum(), uid: "uid-of-sum".into() });
    let one = Some(OrphanKey::Pod(ObjectKey::namespaced("shop", "a")));
    for (name, undecodable, change, expected) in [
        ("that runs when the loop starts", "uid-of-sum", added(pod("a")), all.clone()),
        ("that is terminating", "uid-of-sum", updated(pod("a").terminating()), all),
        ("that runs", "uid-of-sum", updated(pod("a")), None),
        ("that was counted", "uid-of-sum", added(pod("a").counted().terminating()), None),
        ("of an earlier job of the name", "another", updated(pod("a").terminating()), one),
    ] {
        let jobs = CountingJobs::of(Jobs { decoded: Vec::new(), undecodable: Some((sum(), undecodable.into())) });
        assert_eq!(orphan_of_pod(&change, &jobs), expected, "a pod {name}");
    }
}

#[test]
fn a_job_that_finishes_or_goes_leaves_its_pods_to_the_queue_of_orphans() {
    let pods = Some(OrphanKey::PodsOf { job: sum(), uid: "uid-of-sum".into() });
    assert_eq!(orphans_of_job(&updated(&job(), &finished())), pods);
    assert_eq!(orphans_of_job(&Change::Deleted { last: Arc::new(job().build()), final_state_known: false }), pods);
    assert_eq!(orphans_of_job(&updated(&job(), &job())), None);
    assert_eq!(orphans_of_job(&Change::Added(Arc::new(finished().build()))), None);
}
