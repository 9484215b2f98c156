//! Pod failure policies of jobs.

use serde::Deserialize;

use crate::intern::InternedStr;
use crate::protobuf::{Kind, ProtobufType};

crate::message! {
    /// Rules for the failed pods of a Job.
    pub struct PodFailurePolicy {
        /// The rules; the first that matches a pod decides.
        pub rules: Box<[PodFailurePolicyRule]> = "rules" @ 1;
    }
}

crate::message! {
    /// A rule of a pod failure policy.
    pub struct PodFailurePolicyRule {
        /// The action if a pod matches.
        pub action: PodFailurePolicyAction = "action" @ 1;
        /// The exit codes that match.
        pub on_exit_codes: Option<OnExitCodes> = "onExitCodes" @ 2;
        /// The conditions of pods that match.
        pub on_pod_conditions: Box<[PodConditionPattern]> = "onPodConditions" @ 3;
    }
}

/// Action of a rule of a pod failure policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum PodFailurePolicyAction {
    /// The Job fails as a whole.
    FailJob,
    /// The index of the pod fails.
    FailIndex,
    /// The failure is not counted.
    Ignore,
    /// The failure is counted.
    Count,
    /// Not said, or a word that we do not know.
    #[default]
    #[serde(other)]
    Other,
}

impl ProtobufType for PodFailurePolicyAction {
    const KIND: Kind = Kind::Text;
}

crate::message! {
    /// The exit codes that a rule matches.
    pub struct OnExitCodes {
        /// Name of the container; `None` means any container.
        pub container_name: Option<InternedStr> = "containerName" @ 1;
        /// Relation of the exit code to the values: one of them, or none.
        pub operator: ExitCodesOperator = "operator" @ 2;
        /// Exit codes to compare with.
        pub values: Box<[i32]> = "values" @ 3;
    }
}

/// Comparison of exit codes with the values of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum ExitCodesOperator {
    /// The code is one of the values.
    In,
    /// The code is not among the values.
    NotIn,
    /// Not said, or a word that we do not know: matches nothing.
    #[default]
    #[serde(other)]
    Other,
}

impl ProtobufType for ExitCodesOperator {
    const KIND: Kind = Kind::Text;
}

crate::message! {
    /// The condition of a pod that a rule matches, or that a pod has.
    #[derive(Eq)]
    pub struct PodConditionPattern {
        /// `type`, empty if it is absent.
        pub type_: InternedStr = "type" @ 1;
        /// `status`, empty if it is absent.
        pub status: InternedStr = "status" @ 2;
    }
}
