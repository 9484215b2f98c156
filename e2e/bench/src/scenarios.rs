//! The scenarios.

use std::time::Duration;

use anyhow::Result;
use futures::FutureExt;
use futures::future::LocalBoxFuture;

use super::probe::{self, Probe};
use super::size::Size;
use super::testbed::Testbed;
use super::workload::Fleet;
use super::{
    autoscalers, budgets, cron_jobs, daemon_sets, garbage, jobs, large_cluster, mirrored, service_cidrs, services,
    stateful_sets,
};

/// The controllers of workloads.
const WORKLOADS: &str =
    "deployment,replicaset,replicationcontroller,job,cronjob,ttl-after-finished,statefulset,daemonset,podgc";

/// The programs that run beside a manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Surroundings {
    /// None but the API server: pods are neither scheduled nor run.
    Nothing,
    /// A scheduler, and nodes that run pods.
    Nodes,
    /// The same, and upstream's garbage collector.
    NodesAndCollector,
}

/// One scenario: phases that follow each other on one control plane.
pub struct Scenario {
    /// As the command line selects it.
    pub name: &'static str,
    /// What it does, for the report.
    pub about: &'static str,
    /// Part of a quick run.
    pub quick: bool,
    /// What the managers run, where that is not what the plan says.
    pub controllers: Option<&'static str>,
    pub(super) probe: Probe,
    /// What no client but the managers writes or gets: [`Setup::requests`](super::testbed::Setup::requests).
    pub(super) requests: &'static [&'static str],
    /// The managers are never idle.
    pub(super) is_periodic: bool,
    pub(super) surroundings: Surroundings,
    pub(super) break_every: Option<Duration>,
    pub(super) play: for<'a> fn(&'a mut Testbed, Size) -> LocalBoxFuture<'a, Result<()>>,
}

const fn scenario(
    name: &'static str,
    about: &'static str,
    play: for<'a> fn(&'a mut Testbed, Size) -> LocalBoxFuture<'a, Result<()>>,
) -> Scenario {
    Scenario {
        name,
        about,
        quick: false,
        controllers: None,
        probe: probe::REPLICA_SET,
        requests: &[],
        is_periodic: false,
        surroundings: Surroundings::Nodes,
        break_every: None,
        play,
    }
}

/// A scenario about the controllers of garbage and namespaces, which is played by name.
const fn of_garbage(
    name: &'static str,
    about: &'static str,
    play: for<'a> fn(&'a mut Testbed, Size) -> LocalBoxFuture<'a, Result<()>>,
) -> Scenario {
    of_controller(name, about, (garbage::CONTROLLERS, probe::GARBAGE), play)
}

/// A scenario for which the managers run controllers of its own, and are probed by one of them; it is played by name.
const fn of_controller(
    name: &'static str,
    about: &'static str,
    (controllers, probe): (&'static str, Probe),
    play: for<'a> fn(&'a mut Testbed, Size) -> LocalBoxFuture<'a, Result<()>>,
) -> Scenario {
    Scenario { controllers: Some(controllers), probe, ..scenario(name, about, play) }
}

/// Every scenario, in the order of the report.
pub static SCENARIOS: &[Scenario] = &[
    Scenario {
        quick: true,
        ..scenario("idle", "nothing to do for a minute", |testbed, size| idle(testbed, size).boxed_local())
    },
    Scenario {
        quick: true,
        surroundings: Surroundings::NodesAndCollector,
        ..scenario("replica-sets", "100 replica sets of 50 pods, made and deleted", |testbed, size| {
            replica_sets(testbed, size).boxed_local()
        })
    },
    Scenario {
        quick: true,
        ..scenario(
            "deployments",
            "100 deployments of 50 pods: available, all rolled, a minute of rest, scaled to one and back, restarted",
            |testbed, size| deployments(testbed, size).boxed_local(),
        )
    },
    scenario("restart", "started again with 5,000 pods, then with 20,000", |testbed, size| {
        restart(testbed, size).boxed_local()
    }),
    scenario("rest", "20,000 pods at rest, then 50,000", |testbed, size| rest(testbed, size).boxed_local()),
    scenario("churn", "ten changes a second for five minutes", |testbed, size| churn(testbed, size).boxed_local()),
    scenario("one-namespace", "2,000 deployments of one pod in one namespace", |testbed, size| {
        many(testbed, size, 1).boxed_local()
    }),
    scenario("200-namespaces", "2,000 deployments of one pod in 200 namespaces", |testbed, size| {
        many(testbed, size, 200).boxed_local()
    }),
    scenario("large", "one deployment of 5,000 pods: available, rolled", |testbed, size| {
        large(testbed, size).boxed_local()
    }),
    Scenario {
        break_every: Some(Duration::from_secs(5)),
        ..scenario("cut", "a rollout of 1,000 pods while all connections break every five seconds", |testbed, size| {
            cut(testbed, size).boxed_local()
        })
    },
    of_garbage("gc-background", "100 deployments of 50 pods deleted in the background", |testbed, size| {
        garbage::background(testbed, size).boxed_local()
    }),
    of_garbage("gc-namespace", "a namespace of 5,000 pods, 500 config maps, 100 custom objects", |testbed, size| {
        garbage::namespace(testbed, size).boxed_local()
    }),
    of_garbage("gc-orphans", "an owner of 5,000 pods deleted without them", |testbed, size| {
        garbage::orphans(testbed, size).boxed_local()
    }),
    of_garbage("gc-chains", "20,000 config maps in chains of ten owners (quick: 5,000)", |testbed, size| {
        garbage::chains(testbed, size).boxed_local()
    }),
    of_garbage("gc-restart", "started beside 50,000 config maps in chains (quick: 10,000)", |testbed, size| {
        garbage::restart(testbed, size).boxed_local()
    }),
    of_garbage("gc-kinds", "300 custom resource definitions come and go (quick: 100)", |testbed, size| {
        garbage::kinds(testbed, size).boxed_local()
    }),
    of_garbage("gc-large", "2,000 config maps of 100 KB (quick: 500)", |testbed, size| {
        garbage::large_objects(testbed, size).boxed_local()
    }),
    of_controller(
        "jobs",
        "100 indexed jobs of 20 pods, which finish at once; latency is from a job's last pod that finished until the \
         job is complete",
        (jobs::CONTROLLERS, probe::JOB),
        |testbed, size| jobs::many(testbed, size).boxed_local(),
    ),
    of_controller(
        "job-large",
        "an indexed job of 5,000 pods (quick: 1,000); latency as of jobs",
        (jobs::CONTROLLERS, probe::JOB),
        |testbed, size| jobs::large(testbed, size).boxed_local(),
    ),
    of_controller(
        "stateful-sets",
        "50 ordered stateful sets of 20 pods (quick: 10 of 10), made, rolled, scaled to zero",
        (stateful_sets::CONTROLLERS, probe::STATEFUL_SET),
        |testbed, size| stateful_sets::made_rolled_and_scaled(testbed, size).boxed_local(),
    ),
    of_controller(
        "daemonsets",
        "10 daemon sets on 500 nodes (quick: 2 on 100), made and rolled",
        (daemon_sets::CONTROLLERS, probe::DAEMON_SET),
        |testbed, size| daemon_sets::made_and_rolled(testbed, size).boxed_local(),
    ),
    of_controller(
        "cron-jobs",
        "200 cron jobs that are due in one minute; latency is from the minute until a job is created",
        (cron_jobs::CONTROLLERS, probe::CRON_JOB),
        |testbed, size| cron_jobs::due_at_once(testbed, size).boxed_local(),
    ),
    of_controller(
        "workloads-idle",
        "nothing to do for a minute, for all controllers of workloads",
        (WORKLOADS, probe::REPLICA_SET),
        |testbed, size| idle(testbed, size).boxed_local(),
    ),
    Scenario {
        requests: services::REQUESTS,
        surroundings: Surroundings::NodesAndCollector,
        ..of_controller(
            "services",
            "1,000 services of 20 pods (quick: 100), made, rolled, deleted; latency is from a pod's readiness until it is \
             a ready endpoint of a slice",
            (services::SLICES, probe::SERVICE),
            |testbed, size| services::many(testbed, size).boxed_local(),
        )
    },
    Scenario {
        requests: services::REQUESTS,
        surroundings: Surroundings::NodesAndCollector,
        ..of_controller(
            "service-large",
            "a service of 5,000 pods (quick: 1,000), with slices and endpoints, made, rolled, deleted; latency as of \
             services",
            (services::SLICES_AND_ENDPOINTS, probe::SERVICE),
            |testbed, size| services::large(testbed, size).boxed_local(),
        )
    },
    Scenario {
        requests: mirrored::REQUESTS,
        ..of_controller(
            "mirrored",
            "1,000 services without selector (quick: 100), each with an Endpoints object of 20 addresses, made, changed, \
             deleted; latency is from the write of an address until it is a ready endpoint of a slice",
            (mirrored::CONTROLLERS, probe::MIRRORED_SLICE),
            |testbed, size| mirrored::many(testbed, size).boxed_local(),
        )
    },
    Scenario {
        requests: service_cidrs::REQUESTS,
        ..of_controller(
            "service-cidrs",
            "200 service CIDRs (quick: 50) within a larger one, made, deleted; latency is from the creation of one until it \
             is ready, and from the end of its grace period of 10 s until it is gone",
            (service_cidrs::CONTROLLERS, probe::SERVICE_CIDR),
            |testbed, size| service_cidrs::made_and_deleted(testbed, size).boxed_local(),
        )
    },
    Scenario {
        requests: budgets::REQUESTS,
        ..of_controller(
            "budgets",
            "500 disruption budgets of 4 pods (quick: 100), all of which are evicted as soon as the budget allows it",
            (budgets::CONTROLLERS, probe::BUDGET),
            |testbed, size| budgets::drained(testbed, size).boxed_local(),
        )
    },
    Scenario {
        requests: autoscalers::REQUESTS,
        is_periodic: true,
        ..of_controller(
            "autoscalers",
            "1,000 autoscalers by CPU (quick: 200), made, at rest, scaled, gone through after a restart; latency at rest \
             is the time between two syncs of an autoscaler, after the restart the time from the first sync of any",
            (autoscalers::CONTROLLERS, probe::AUTOSCALER),
            |testbed, size| autoscalers::scaled(testbed, size).boxed_local(),
        )
    },
    Scenario {
        surroundings: Surroundings::Nothing,
        // The garbage collector and others look at the API server at intervals.
        is_periodic: true,
        ..of_controller(
            "large-cluster",
            "all controllers but node-lifecycle beside 5,000 nodes and 150,000 pods of 1,500 replica sets and services (quick: a tenth), \
             written straight to the API server; 5,000 changes of pods, beside 1,000 pods and beside all",
            (large_cluster::CONTROLLERS, probe::REPLICA_SET),
            |testbed, size| large_cluster::started_and_changed(testbed, size).boxed_local(),
        )
    },
];

async fn idle(testbed: &mut Testbed, size: Size) -> Result<()> {
    let time = Duration::from_secs(size.pick(10, 60));
    testbed
        .phase("idle", async |_| {
            tokio::time::sleep(time).await;
            Ok(())
        })
        .await
}

async fn replica_sets(testbed: &mut Testbed, size: Size) -> Result<()> {
    let sets = size.pick(20, 100);
    testbed.phase("made", async |it| it.make_replica_sets(0..sets, 50).await).await?;
    testbed.phase("deleted", async |it| it.delete_replica_sets().await).await
}

async fn deployments(testbed: &mut Testbed, size: Size) -> Result<()> {
    let fleet = Fleet { deployments: size.pick(10, 100), pods: 50, namespaces: 1 };
    testbed.phase("available", async |it| it.make_deployments(fleet).await).await?;
    testbed.phase("rolled", async |it| it.roll(fleet, "example/main:2").await).await?;
    testbed
        .phase("rested", async |_| {
            tokio::time::sleep(Duration::from_secs(size.pick(5, 60))).await;
            Ok(())
        })
        .await?;
    testbed.phase("scaled to one", async |it| it.scale(fleet, 1).await).await?;
    testbed.phase("scaled back", async |it| it.scale(fleet, 50).await).await?;
    testbed.restart("restarted").await
}

async fn restart(testbed: &mut Testbed, size: Size) -> Result<()> {
    let (few, many) = size.pick((10, 40), (100, 400));
    testbed.phase("5,000 pods made", async |it| it.make_replica_sets(0..few, 50).await).await?;
    testbed.restart("with 5,000 pods").await?;
    testbed.phase("20,000 pods made", async |it| it.make_replica_sets(few..many, 50).await).await?;
    testbed.restart("with 20,000 pods").await?;
    testbed.per_pod(("with 5,000 pods", "with 20,000 pods"), size.pick(1500, 15_000));
    Ok(())
}

async fn rest(testbed: &mut Testbed, size: Size) -> Result<()> {
    let (few, many) = size.pick((40, 100), (400, 1000));
    testbed.phase("20,000 pods", async |it| it.make_replica_sets(0..few, 50).await).await?;
    testbed.phase("50,000 pods", async |it| it.make_replica_sets(few..many, 50).await).await
}

async fn churn(testbed: &mut Testbed, size: Size) -> Result<()> {
    let fleet = Fleet { deployments: 100, pods: 5, namespaces: 1 };
    testbed.phase("available", async |it| it.make_deployments(fleet).await).await?;
    let changes = size.pick(100, 3000);
    testbed.phase("churned", async |it| it.churn(fleet, Duration::from_millis(100), changes).await).await
}

async fn many(testbed: &mut Testbed, size: Size, namespaces: usize) -> Result<()> {
    let fleet = Fleet { deployments: size.pick(200, 2000), pods: 1, namespaces };
    testbed.phase("available", async |it| it.make_deployments(fleet).await).await?;
    testbed.phase("rolled", async |it| it.roll(fleet, "example/main:2").await).await
}

async fn large(testbed: &mut Testbed, size: Size) -> Result<()> {
    let fleet = Fleet { deployments: 1, pods: size.pick(500, 5000), namespaces: 1 };
    testbed.phase("available", async |it| it.make_deployments(fleet).await).await?;
    testbed.phase("rolled", async |it| it.roll(fleet, "example/main:2").await).await
}

async fn cut(testbed: &mut Testbed, size: Size) -> Result<()> {
    let fleet = Fleet { deployments: size.pick(5, 20), pods: 50, namespaces: 1 };
    testbed.phase("available", async |it| it.make_deployments(fleet).await).await?;
    testbed.phase("rolled", async |it| it.roll(fleet, "example/main:2").await).await
}
