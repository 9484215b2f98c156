//! Decisions of the controller that attaches volumes to nodes and detaches them.
//!
//! The decisions are pure: no function here reads a cache, sends a request or asks for the time. Nothing registers
//! them as a controller yet.
//!
//! | file | decides |
//! | --- | --- |
//! | `names` | names of volumes in `node.status` and names of `VolumeAttachments`, equal to upstream's in bytes |
//! | `volume` | name and sharing of the volume that a source describes |
//! | `actual` | state of a volume on all nodes, as objects show it |
//! | `claim` | volume behind the claim that a pod names |
//! | `desired` | volumes that pods need, by node |
//! | `plan` | next steps for one volume on all its nodes |
//! | `view` | fields of attachments and CSI drivers that decisions read |
//! | `report` | patch of `node.status.volumesAttached` |
//! | `events` | messages of events |
//!
//! # Differences from upstream
//!
//! - A volume for a single node counts as attached until its `VolumeAttachment` and its entry in `node.status` are
//!   gone. Upstream ignores a volume after a failed detach, and attaches it to a second node.
//! - A detach from a healthy node is verified at any age. Upstream skips this check after six minutes.
//! - A volume handle may contain `^`. Upstream cannot detach such a volume after a restart.
//! - Volumes that the kubelet of an unmanaged node attaches are left alone.
//! - Entries of unknown plugins in `volumesAttached` stay as they are, in order, and cost no request.

mod actual;
mod claim;
mod desired;
mod events;
mod names;
mod plan;
mod report;
#[cfg(test)]
mod tests;
mod view;
mod volume;
