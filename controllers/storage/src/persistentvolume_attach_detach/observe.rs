//! The snapshot of a volume, which the plan reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::Session;
use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::Node;
use kcm_framework::informers::Lookup;

use super::actual::{NodeState, observe};
use super::desired::Wanted;
use super::memory::{Facts, Operation};
use super::names::{self, Plugin};
use super::plan::{Attachment, Observed};
use super::state::State;
use super::view::VolumeAttachment;
use super::world::{World, health};

/// The objects of a volume, by the name of the node.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    pub(super) wanted: BTreeMap<String, Wanted>,
    pub(super) nodes: BTreeMap<String, NodeState>,
    pub(super) attachments: BTreeMap<String, Arc<VolumeAttachment>>,
    pub(super) facts: BTreeMap<String, Facts>,
    /// Facts of nodes that the volume was detached from, which end.
    pub(super) detached: Vec<Facts>,
}

/// Name of the attachment of a volume to a node; `None` for a volume without attachments.
pub(super) fn attachment_name(volume: &str, node: &str) -> Option<String> {
    match Plugin::of(volume) {
        Plugin::Csi { driver, handle } => Some(names::attachment(driver, handle, node)),
        Plugin::ReportOnly | Plugin::Unknown => None,
    }
}

impl Snapshot {
    /// Takes the snapshot. Returns `None` while an object that it needs cannot be decoded.
    pub(super) fn take(volume: &str, world: &World, state: &State, session: &Session) -> Option<Self> {
        let wanted = state.desired.lock().wanted(volume);
        let facts = state.memories.of(volume);
        let mut names: BTreeSet<String> = wanted.keys().chain(facts.keys()).cloned().collect();
        let with_volume = world.nodes_by_volume.get(volume);
        names.extend(with_volume.iter().map(|node| node.metadata.key.name().to_owned()));
        names.extend(world.attachments_of(volume).iter().map(|attachment| attachment.node_name.to_string()));

        let mut snapshot = Self { wanted, facts, ..Self::default() };
        let mut absent = BTreeSet::new();
        for name in names {
            if let Some(id) = attachment_name(volume, &name) {
                match world.attachments.lookup(&ObjectKey::cluster_scoped(id)) {
                    Lookup::Found(attachment) => drop(snapshot.attachments.insert(name.clone(), attachment)),
                    Lookup::Absent => {}
                    Lookup::Undecodable(object) => {
                        session.requeue_when_decodable(&world.attachments.cache(), &object);
                        session.explain(|| format!("waits for an attachment that cannot be decoded, for node {name}"));
                        return None;
                    }
                }
            }
            let found = match world.nodes.lookup(&ObjectKey::cluster_scoped(name.as_str())) {
                Lookup::Found(node) => node_state(volume, &node, world),
                Lookup::Absent => {
                    absent.insert(name.clone());
                    NodeState::absent(true)
                }
                Lookup::Undecodable(object) => {
                    session.requeue_when_decodable(&world.nodes.cache(), &object);
                    session.explain(|| format!("waits for node {name}, which cannot be decoded"));
                    return None;
                }
            };
            snapshot.nodes.insert(name, found);
        }
        let idle = state.memories.idle(volume, |node| absent.contains(node));
        for name in absent {
            let may_be_mounted = snapshot.attachments.contains_key(&name) && !idle.contains(&name);
            snapshot.nodes.insert(name, NodeState::absent(!may_be_mounted));
        }
        snapshot.leave_out_unconcerned();
        Some(snapshot)
    }

    /// Leaves out nodes that have nothing to do with the volume any more, with the facts about them.
    fn leave_out_unconcerned(&mut self) {
        let Self { wanted, nodes, attachments, facts, detached } = self;
        nodes.retain(|name, node| {
            node.is_reported || node.is_in_use || wanted.contains_key(name) || attachments.contains_key(name)
        });
        facts.retain(|name, facts| {
            let has_volume = attachments.contains_key(name) || nodes.get(name).is_some_and(|node| node.is_reported);
            if !has_volume && facts.detach.is_started() {
                detached.push(*facts);
                facts.detach = Operation::default();
            }
            nodes.contains_key(name)
        });
    }

    /// Brings the facts up to date with the objects.
    pub(super) fn follow(&mut self, now: Timestamp) {
        for (name, node) in &self.nodes {
            let attachment = self.attachments.get(name).map(|attachment| attachment.state());
            let is_deleting = attachment.as_ref().is_some_and(|attachment| attachment.is_deleting);
            let is_attached = attachment.as_ref().is_some_and(|attachment| attachment.is_attached);
            let facts = self.facts.entry(name.clone()).or_default();
            facts.was_forced &= node.is_in_use;
            facts.is_restored &= !node.is_reported && is_attached && !is_deleting && !self.wanted.contains_key(name);
            if self.wanted.contains_key(name) {
                facts.detach = Operation::default();
                if attachment.is_some() && !is_attached && !is_deleting {
                    facts.attach.start(now);
                }
            } else {
                facts.attach = Operation::default();
                facts.is_conflict_reported = false;
                if is_deleting {
                    facts.detach.start(now);
                }
            }
        }
    }

    /// Returns the state that the plan reads.
    pub(super) fn observed(&self, volume: &str) -> Observed<'_> {
        let attachments: BTreeMap<&str, Attachment<'_>> =
            self.attachments.iter().map(|(node, attachment)| (node.as_str(), attachment.state())).collect();
        let memory =
            |node: &str, is_wanted| self.facts.get(node).map(|facts| facts.memory(is_wanted)).unwrap_or_default();
        observe(volume, &self.wanted, &self.nodes, &attachments, memory)
    }
}

fn node_state(volume: &str, node: &Node, world: &World) -> NodeState {
    let volumes = world.parts.nodes.of(node);
    NodeState {
        health: health(node),
        is_reported: volumes.attached.iter().any(|entry| entry.name == volume),
        is_in_use: volumes.in_use.iter().any(|name| name == volume),
    }
}
