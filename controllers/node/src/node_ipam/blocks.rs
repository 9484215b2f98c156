//! The blocks of one cluster CIDR: which are occupied, and which is next. Pure.

use std::collections::BTreeMap;

use super::cidr::{Cidr, shift_left, shift_right, width};

/// The blocks of a cluster CIDR, one of which is the pod CIDR of a Node.
#[derive(Debug)]
pub(super) struct Blocks {
    cluster: Cidr,
    /// Prefix length of a block.
    length: u8,
    count: u64,
    /// The block to try next. It moves on with each allocation, so that a released block is used again late.
    next: u64,
    /// Number of holders of each occupied block.
    holders: BTreeMap<u64, u32>,
    changes: Changes,
}

/// A sequence of blocks, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    first: u64,
    last: u64,
}

/// Numbers of blocks that became occupied and free since the last call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Changes {
    pub(super) occupied: u64,
    pub(super) released: u64,
}

/// A block that nobody holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FreeBlock {
    pub(super) cidr: Cidr,
    /// Number of occupied blocks before it.
    pub(super) skipped: u64,
    number: u64,
}

impl Blocks {
    /// The blocks of `cluster` with a prefix of `length`, which is at least the prefix of the cluster.
    pub(super) const fn new(cluster: Cidr, length: u8) -> Self {
        let count = 1 << length.saturating_sub(cluster.length);
        Self {
            cluster,
            length,
            count,
            next: 0,
            holders: BTreeMap::new(),
            changes: Changes { occupied: 0, released: 0 },
        }
    }

    pub(super) const fn cluster(&self) -> Cidr {
        self.cluster
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn occupied(&self) -> usize {
        self.holders.len()
    }

    pub(super) fn take_changes(&mut self) -> Changes {
        std::mem::take(&mut self.changes)
    }

    /// Returns the blocks that a range touches: all if it contains the cluster CIDR, the block around it if it is smaller
    /// than a block. `None` if neither contains the other.
    pub(super) fn span(&self, cidr: Cidr) -> Option<Span> {
        if cidr.contains(self.cluster) {
            return Some(Span { first: 0, last: self.count - 1 });
        }
        let number = |address: u128| {
            let offset = shift_right(address - self.cluster.base, width(self.cluster.is_ipv6) - self.length);
            u64::try_from(offset).ok()
        };
        let inside = self.cluster.contains(cidr);
        inside.then(|| Some(Span { first: number(cidr.base)?, last: number(cidr.last())? })).flatten()
    }

    /// Adds a holder to the blocks.
    pub(super) fn hold(&mut self, span: Span) {
        for block in span.first..=span.last {
            let holders = self.holders.entry(block).or_insert(0);
            self.changes.occupied += u64::from(*holders == 0);
            *holders += 1;
        }
    }

    /// Removes a holder from the blocks. A block is free when its last holder goes.
    pub(super) fn release(&mut self, span: Span) {
        for block in span.first..=span.last {
            let Some(holders) = self.holders.get_mut(&block) else { continue };
            *holders -= 1;
            if *holders == 0 {
                self.holders.remove(&block);
                self.changes.released += 1;
            }
        }
    }

    /// Returns `true` if a block has several holders.
    pub(super) fn is_shared(&self, span: Span) -> bool {
        self.holders.range(span.first..=span.last).any(|(_, holders)| *holders > 1)
    }

    /// Returns the next free block. It stays free until it is [taken](Self::take).
    pub(super) fn next_free(&self) -> Option<FreeBlock> {
        let free_from = |from: u64, end: u64| {
            // The occupied blocks from there on, until one is missing.
            let mut candidate = from;
            for block in self.holders.range(from..end).map(|(block, _)| *block) {
                if block != candidate {
                    break;
                }
                candidate += 1;
            }
            (candidate < end).then_some(candidate)
        };
        let number = free_from(self.next, self.count).or_else(|| free_from(0, self.next))?;
        let skipped = if number >= self.next { number - self.next } else { self.count - self.next + number };
        let offset = shift_left(u128::from(number), width(self.cluster.is_ipv6) - self.length);
        let cidr = Cidr::new(self.cluster.base | offset, self.length, self.cluster.is_ipv6);
        Some(FreeBlock { cidr, skipped, number })
    }

    /// Adds the first holder to a free block.
    pub(super) fn take(&mut self, free: FreeBlock) -> Span {
        let span = Span { first: free.number, last: free.number };
        self.hold(span);
        self.next = (free.number + 1) % self.count;
        span
    }
}
