use jiff::{SignedDuration, Timestamp};

use super::super::plan::{Attachment, Backend, Health, Memory, Observed, OnNode, Settings, Step, plan};

const NOW: Timestamp = Timestamp::constant(1_000_000, 0);

/// Returns every state of a volume on a node that differs in what the plan reads.
fn states(node: &str) -> Vec<OnNode<'_>> {
    let attachments = [
        None,
        Some(Attachment::default()),
        Some(Attachment { is_attached: true, ..Attachment::default() }),
        Some(Attachment { is_attached: true, is_deleting: true, ..Attachment::default() }),
        Some(Attachment { attach_error: Some("boom"), ..Attachment::default() }),
    ];
    let healths =
        [Health::Ready, Health::NotReady, Health::Absent, Health::OutOfService { is_ready: true }, Health::Unmanaged];
    let memories = [0, 1000]
        .map(|seconds| Memory { unwanted_since: Some(NOW - SignedDuration::from_secs(seconds)), ..Memory::default() });
    let mut states = Vec::new();
    for attachment in attachments {
        for health in healths {
            for memory in memories {
                for [is_wanted, is_reported, is_in_use] in
                    (0..8).map(|bits| [bits & 1, bits & 2, bits & 4].map(|bit| bit != 0))
                {
                    let attachment = attachment.clone();
                    states.push(OnNode { node, health, is_wanted, is_reported, is_in_use, attachment, memory });
                }
            }
        }
    }
    states
}

#[test]
fn every_pair_of_nodes_keeps_the_invariants() {
    let settings = Settings { disable_force_detach_on_timeout: false, disable_verification: false };
    for a in states("a") {
        for b in states("b") {
            let volume = Observed { backend: Backend::Csi, is_shared: false, nodes: vec![a.clone(), b.clone()] };
            let plan = plan(&volume, settings, NOW);
            let attaches = plan.steps.iter().filter(|(_, step)| *step == Step::Attach).count();
            assert!(attaches <= 1, "attached to two nodes: {volume:?}");
            for (node, step) in &plan.steps {
                let (on, other) = if *node == "a" { (&a, &b) } else { (&b, &a) };
                assert_ne!(on.health, Health::Unmanaged, "{volume:?}");
                match step {
                    Step::Attach => {
                        let responds = matches!(other.health, Health::Ready | Health::Unmanaged);
                        let uses = other.is_in_use && responds;
                        let is_free = other.attachment.is_none() && !other.is_reported && !uses;
                        assert!(
                            on.is_wanted && on.health != Health::Absent && on.attachment.is_none() && is_free,
                            "{volume:?}"
                        );
                    }
                    Step::Report => {
                        let is_attached = |it: &Attachment<'_>| it.is_attached && !it.is_deleting;
                        assert!(on.is_wanted && on.attachment.as_ref().is_some_and(is_attached), "{volume:?}");
                    }
                    Step::Detach(None) => assert!(!on.is_wanted && !on.is_in_use, "{volume:?}"),
                    Step::Detach(Some(_)) => assert!(!on.is_wanted && on.health != Health::Ready, "{volume:?}"),
                    Step::Keep | Step::ReportConflict | Step::FailAttach(_) => assert!(on.is_wanted, "{volume:?}"),
                    Step::StartUnmountWait | Step::FailDetach(_) => assert!(!on.is_wanted, "{volume:?}"),
                    Step::Withdraw => assert!(on.is_reported, "{volume:?}"),
                }
            }
        }
    }
}
