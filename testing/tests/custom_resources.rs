//! A custom resource that is installed, deleted and installed again under a running manager.

use std::alloc::System;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::time::Duration;

use kcm_framework::api::{ObjectKey, PartialObjectMeta};
use kcm_framework::client::{Patch, Payload};
use kcm_framework::informers::{Change, Informer, ListOptions};
use kcm_framework::{
    BoxError, ControllerContext, ControllerDescriptor, ControllerState, Extensions, Loops, Reconcile, ReconcileError,
    Session, Source, async_trait,
};
use kcm_testing::sandbox::{Resource, Sandbox, SandboxOptions};
use kcm_testing::{TestCluster, TestEnvironment};
use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const WEBSITES: Resource = Resource::namespaced("example.com", "v1", "websites", "Website");
const CONFIG_MAPS: Resource = Resource::namespaced("", "v1", "configmaps", "ConfigMap");
const NAME: &str = "website-controller";

/// A controller of websites, which reads config maps too. It is skipped if websites are not served.
const CONTROLLER: ControllerDescriptor = ControllerDescriptor::new(NAME, init);

/// Reads config maps alone, and stays.
const NEIGHBOUR: ControllerDescriptor = ControllerDescriptor::new_async("neighbour-controller", |context| {
    Box::pin(async move {
        let maps = context.informers().informer_for::<PartialObjectMeta>(CONFIG_MAPS, ListOptions::default());
        let task = Loops::new().task("neighbour", |cancel| {
            Box::pin(async move {
                cancel.cancelled().await;
                Ok(())
            })
        });
        Ok(task.after_sync_of([maps.cache()]))
    })
});

/// Number of living values of a kind.
#[derive(Clone, Default)]
struct Count(Arc<AtomicIsize>);

struct Counted(Count);

impl Count {
    fn one_more(&self) -> Counted {
        self.0.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone())
    }

    fn get(&self) -> isize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Values that an initialization makes and its end must free.
#[derive(Clone, Default)]
struct Living {
    handlers: Count,
    reconcilers: Count,
}

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    {
        if !context.discovery().is_available(&WEBSITES) {
            return Ok(Loops::none("websites are not served"));
        }
        let living = context.extension::<Living>().expect("the test must have put it there");
        let mut one = context.control_loop(NAME);
        let websites = one.primary_for::<PartialObjectMeta>(Source::of(WEBSITES));
        let counted = living.handlers.one_more();
        one.watches_for(Source::of(CONFIG_MAPS), move |_: &Change<PartialObjectMeta>| {
            let _owned = &counted;
            std::iter::empty::<ObjectKey>()
        });
        let reconciler = Labels { websites, _counted: living.reconcilers.one_more() };
        let running = Loops::new().with(one.reconcile(reconciler)).health(|| Ok(()));
        Ok(running.debug(|_| http::Response::new(String::new())))
    }
}

/// Sets a label on websites.
struct Labels {
    websites: Informer<PartialObjectMeta>,
    _counted: Counted,
}

#[async_trait]
impl Reconcile for Labels {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let website = self.websites.get(key);
        if website.is_some_and(|website| website.metadata.labels.get("served").is_none()) {
            let patch = json!({ "metadata": { "labels": { "served": "yes" } } });
            session.of(&WEBSITES).patch(key, Patch::Merge(Payload::json(&patch))).await?;
        }
        Ok(())
    }
}

const OBJECTS: usize = 20;

fn create_websites(sandbox: &Sandbox) {
    for number in 0..OBJECTS {
        let website = json!({
            "apiVersion": "example.com/v1", "kind": "Website",
            "metadata": { "name": format!("site-{number}"), "namespace": "default" },
        });
        sandbox.create(&WEBSITES, website).expect("the resource is served");
    }
}

fn all_are_served(sandbox: &Sandbox) -> bool {
    let websites = sandbox.list(&WEBSITES, None);
    websites.len() == OBJECTS && websites.iter().all(|website| website["metadata"]["labels"]["served"] == "yes")
}

/// Figures that must be the same after each round.
#[derive(Debug, PartialEq, Eq)]
struct Footprint {
    informers: usize,
    watches: usize,
    tasks: usize,
    handlers: isize,
    reconcilers: isize,
}

fn footprint(cluster: &TestCluster, living: &Living) -> Footprint {
    Footprint {
        informers: cluster.handle().informers().len(),
        watches: cluster.sandbox().open_watches(&WEBSITES) + cluster.sandbox().open_watches(&CONFIG_MAPS),
        tasks: tokio::runtime::Handle::current().metrics().num_alive_tasks(),
        handlers: living.handlers.get(),
        reconcilers: living.reconcilers.get(),
    }
}

async fn reaches(cluster: &TestCluster, state: ControllerState) {
    let what = format!("the controller is {state:?}");
    cluster
        .eventually(&what, |_| cluster.handle().controller(NAME).is_some_and(|controller| controller.state == state))
        .await;
}

// One test, since the allocator counts for the whole process.
#[tokio::test(start_paused = true)]
async fn a_custom_resource_that_is_installed_and_deleted_fifty_times_leaves_nothing_behind() {
    const ROUNDS: usize = 50;
    /// Rounds until tables and buffers have the sizes that they keep.
    const WARM_UP: usize = 10;
    let living = Living::default();
    let extensions = Extensions::default();
    extensions.insert(living.clone());
    let cluster = TestEnvironment::new([CONTROLLER, NEIGHBOUR])
        .extensions(extensions)
        // The API server's history reaches its full size soon.
        .sandbox_options(SandboxOptions { watch_window: 50, request_log: 50, ..SandboxOptions::default() })
        // Decisions are kept up to a bound, which so few rounds do not reach.
        .explain_memory(0)
        // A request may fail if the resource is removed while it runs.
        .allow_error("websites")
        .start()
        .await;
    reaches(&cluster, ControllerState::Skipped).await;
    let (mut while_installed, mut while_deleted) = (Vec::new(), Vec::new());
    let mut memory = None;
    for round in 0..ROUNDS {
        cluster.sandbox().register(WEBSITES);
        create_websites(cluster.sandbox());
        cluster.eventually("all websites are served", all_are_served).await;
        cluster.settle().await;
        while_installed.push(footprint(&cluster, &living));

        cluster.sandbox().unregister(&WEBSITES);
        reaches(&cluster, ControllerState::Skipped).await;
        // Longer than the time-out of a late response.
        cluster.advance(Duration::from_mins(2)).await;
        while_deleted.push(footprint(&cluster, &living));
        if round == WARM_UP {
            memory = Some(Region::new(ALLOCATOR));
        }
    }
    let held = memory.expect("there are more rounds than that").change();
    let grown = held.bytes_allocated.saturating_sub(held.bytes_deallocated);

    let expected = Footprint { informers: 1, watches: 1, tasks: while_deleted[0].tasks, handlers: 0, reconcilers: 0 };
    assert!(while_deleted.iter().all(|footprint| *footprint == expected), "{while_deleted:#?}");
    let expected = Footprint { informers: 2, watches: 2, tasks: while_installed[0].tasks, handlers: 1, reconcilers: 1 };
    assert!(while_installed.iter().all(|footprint| *footprint == expected), "{while_installed:#?}");
    // A single object that is kept in each round would be more.
    let rounds = ROUNDS - WARM_UP - 1;
    assert!(grown / rounds < 256, "{grown} bytes in {rounds} rounds");
    cluster.stop().await.expect("it stops cleanly");
}
