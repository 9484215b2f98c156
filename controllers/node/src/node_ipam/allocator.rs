//! Which Node holds which blocks. Pure.

use std::collections::HashMap;

use kcm_framework::api::Uid;

use super::blocks::{Blocks, FreeBlock, Span};
use super::cidr::Cidr;
use super::configuration::Clusters;

/// The blocks of all cluster CIDRs and their holders.
///
/// A block is free only if nobody holds it. Holders are Nodes by their uid, and the service CIDRs.
#[derive(Debug)]
pub(super) struct Allocator {
    blocks: Vec<Blocks>,
    nodes: HashMap<Uid, Holding>,
}

/// The blocks that a Node holds.
#[derive(Debug)]
struct Holding {
    cidrs: Box<[Cidr]>,
    /// The cluster CIDR and its blocks.
    spans: Box<[(usize, Span)]>,
    /// `true` if the Node has the pod CIDRs, and not only a reservation.
    is_assigned: bool,
}

/// Result of recording the pod CIDRs of a Node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Occupied {
    /// A pod CIDR lies outside of the cluster CIDR of its position.
    pub(super) is_foreign: bool,
    /// Another Node, or a service CIDR, holds a part of it as well.
    pub(super) is_shared: bool,
}

/// Pod CIDRs that are reserved for a Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reservation {
    pub(super) cidrs: Box<[Cidr]>,
    /// For each cluster CIDR the number of occupied blocks that were skipped. Empty for a reservation that was there.
    pub(super) skipped: Box<[u64]>,
}

/// The cluster CIDR of that position has no free block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exhausted {
    pub(super) index: usize,
}

impl Allocator {
    /// The blocks of cluster CIDRs. Service CIDRs hold the blocks that they touch.
    pub(super) fn new(clusters: &Clusters) -> Self {
        let mut blocks: Vec<Blocks> = clusters.pods.iter().map(|(cidr, length)| Blocks::new(*cidr, *length)).collect();
        for blocks in &mut blocks {
            for service in &clusters.services {
                if let Some(span) = blocks.span(*service) {
                    blocks.hold(span);
                }
            }
        }
        Self { blocks, nodes: HashMap::new() }
    }

    pub(super) fn blocks(&mut self) -> &mut [Blocks] {
        &mut self.blocks
    }

    /// Records the pod CIDRs that a Node has. They occupy the blocks that they touch in every cluster CIDR, also if their
    /// position is another one, as after the order of `--cluster-cidr` was changed.
    pub(super) fn occupy(&mut self, node: &Uid, cidrs: &[Cidr]) -> Occupied {
        let is_known = self.nodes.get(node).is_some_and(|held| *held.cidrs == *cidrs);
        if is_known {
            if let Some(held) = self.nodes.get_mut(node) {
                held.is_assigned = true;
            }
        } else {
            self.release(node);
            let spans = cidrs.iter().flat_map(|cidr| self.spans(*cidr)).collect::<Box<[_]>>();
            for (index, span) in &spans {
                self.blocks[*index].hold(*span);
            }
            self.nodes.insert(node.clone(), Holding { cidrs: cidrs.into(), spans, is_assigned: true });
        }
        let is_inside =
            |(index, cidr): (usize, &Cidr)| self.blocks.get(index).is_some_and(|blocks| blocks.span(*cidr).is_some());
        let is_foreign = !cidrs.iter().enumerate().all(is_inside);
        let spans = self.nodes.get(node).map(|held| &*held.spans).unwrap_or_default();
        let is_shared = spans.iter().any(|(index, span)| self.blocks[*index].is_shared(*span));
        Occupied { is_foreign, is_shared }
    }

    fn spans(&self, cidr: Cidr) -> Vec<(usize, Span)> {
        let of = |(index, blocks): (usize, &Blocks)| blocks.span(cidr).map(|span| (index, span));
        self.blocks.iter().enumerate().filter_map(of).collect()
    }

    /// Reserves a block of each cluster CIDR for a Node without pod CIDRs. A Node that has a reservation gets the same
    /// again: an earlier request may have taken effect although its response was lost.
    ///
    /// Either all blocks are reserved, or none.
    pub(super) fn reserve(&mut self, node: &Uid) -> Result<Reservation, Exhausted> {
        if let Some(held) = self.nodes.get(node).filter(|held| !held.is_assigned) {
            return Ok(Reservation { cidrs: held.cidrs.clone(), skipped: Box::default() });
        }
        let free = |(index, blocks): (usize, &Blocks)| blocks.next_free().ok_or(Exhausted { index });
        let free = self.blocks.iter().enumerate().map(free).collect::<Result<Vec<FreeBlock>, _>>()?;
        self.release(node);
        let taken = free.iter().zip(&mut self.blocks).enumerate();
        let spans = taken.map(|(index, (free, blocks))| (index, blocks.take(*free))).collect();
        let cidrs: Box<[Cidr]> = free.iter().map(|free| free.cidr).collect();
        self.nodes.insert(node.clone(), Holding { cidrs: cidrs.clone(), spans, is_assigned: false });
        Ok(Reservation { cidrs, skipped: free.iter().map(|free| free.skipped).collect() })
    }

    /// Releases everything that a Node holds.
    pub(super) fn release(&mut self, node: &Uid) {
        let Some(held) = self.nodes.remove(node) else { return };
        for (index, span) in &held.spans {
            self.blocks[*index].release(*span);
        }
    }
}
