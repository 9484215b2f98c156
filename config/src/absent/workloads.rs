//! Of workloads and what scales and cleans them.

use super::AbsentSettings;
use crate::checks;
use crate::duration::GoDuration;
use crate::row::{Initial, Row};

/// The settings of each controller.
pub(super) const CONTROLLERS: &[AbsentSettings] = &[
    AbsentSettings {
        controller: "statefulset-controller",
        rows: &[
            Row::new("concurrent-statefulset-syncs", "Statefulset-controller", Initial::Int32(5)).path("StatefulSetController.ConcurrentStatefulSetSyncs").help("How many stateful sets are worked on at once. More is faster, and loads the API server and the network more.").check(checks::positive),
        ],
    },
    AbsentSettings {
        controller: "daemonset-controller",
        rows: &[
            Row::new("concurrent-daemonset-syncs", "Daemonset-controller", Initial::Int32(2)).path("DaemonSetController.ConcurrentDaemonSetSyncs").help("How many daemon sets are worked on at once. More is faster, and loads the API server and the network more.").check(checks::positive),
        ],
    },
    AbsentSettings {
        controller: "horizontal-pod-autoscaler-controller",
        rows: &[
            Row::new("concurrent-horizontal-pod-autoscaler-syncs", "Horizontal-pod-autoscaler-controller", Initial::Int32(5)).path("HPAController.ConcurrentHorizontalPodAutoscalerSyncs").help("How many autoscalers are worked on at once. More is faster, and loads the API server and the network more.").check(checks::positive),
            Row::new("horizontal-pod-autoscaler-cpu-initialization-period", "Horizontal-pod-autoscaler-controller", Initial::Duration(GoDuration::from_secs(5 * 60))).path("HPAController.HorizontalPodAutoscalerCPUInitializationPeriod").help("How long after the start of a pod its CPU usage may be left out."),
            Row::new("horizontal-pod-autoscaler-downscale-stabilization", "Horizontal-pod-autoscaler-controller", Initial::Duration(GoDuration::from_secs(5 * 60))).path("HPAController.HorizontalPodAutoscalerDownscaleStabilizationWindow").help("The period whose highest recommendation the autoscaler does not scale below."),
            Row::new("horizontal-pod-autoscaler-initial-readiness-delay", "Horizontal-pod-autoscaler-controller", Initial::Duration(GoDuration::from_secs(30))).path("HPAController.HorizontalPodAutoscalerInitialReadinessDelay").help("How long after the start of a pod a change of its readiness counts as its first."),
            Row::new("horizontal-pod-autoscaler-sync-period", "Horizontal-pod-autoscaler-controller", Initial::Duration(GoDuration::from_secs(15))).path("HPAController.HorizontalPodAutoscalerSyncPeriod").help("How often each autoscaler is evaluated."),
            Row::new("horizontal-pod-autoscaler-tolerance", "Horizontal-pod-autoscaler-controller", Initial::Float64(0.1)).path("HPAController.HorizontalPodAutoscalerTolerance").help("How far the usage may be from the target, as a share of it, before the autoscaler scales."),
        ],
    },
    AbsentSettings {
        controller: "job-controller",
        rows: &[
            Row::new("concurrent-job-syncs", "Job-controller", Initial::Int32(5)).path("JobController.ConcurrentJobSyncs").help("How many jobs are worked on at once. More is faster, and loads the API server and the network more.").check(checks::positive),
        ],
    },
    AbsentSettings {
        controller: "cronjob-controller",
        rows: &[
            Row::new("concurrent-cron-job-syncs", "Cronjob-controller", Initial::Int32(5)).path("CronJobController.ConcurrentCronJobSyncs").help("How many cron jobs are worked on at once. More is faster, and loads the API server and the network more.").check(checks::positive),
        ],
    },
];
