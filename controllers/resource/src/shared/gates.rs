//! The feature gates of devices.

use kcm_framework::config::{Gate, GateStage};

pub(crate) const DYNAMIC_RESOURCE_ALLOCATION: Gate =
    Gate { name: "DynamicResourceAllocation", default: true, stage: GateStage::Ga, locked: true };

pub(crate) const ADMIN_ACCESS: Gate =
    Gate { name: "DRAAdminAccess", default: true, stage: GateStage::Ga, locked: true };

pub(crate) const PRIORITIZED_LIST: Gate =
    Gate { name: "DRAPrioritizedList", default: true, stage: GateStage::Ga, locked: true };

pub(crate) const GENERIC_WORKLOAD: Gate =
    Gate { name: "GenericWorkload", default: false, stage: GateStage::Beta, locked: false };

/// Claims of groups of Pods. Depends on [`GENERIC_WORKLOAD`].
pub(crate) const WORKLOAD_CLAIMS: Gate =
    Gate { name: "DRAWorkloadResourceClaims", default: false, stage: GateStage::Beta, locked: false };

pub(crate) const DEVICE_TAINTS: Gate =
    Gate { name: "DRADeviceTaints", default: true, stage: GateStage::Ga, locked: false };

/// Rules that taint devices. Depends on [`DEVICE_TAINTS`].
pub(crate) const DEVICE_TAINT_RULES: Gate =
    Gate { name: "DRADeviceTaintRules", default: true, stage: GateStage::Ga, locked: false };
