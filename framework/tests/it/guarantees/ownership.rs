//! Ownership as a plugin has it: an owner of a kind of its own adopts and releases pods.

use kcm_api::views::Pod;
use kcm_api::{ObjectKey, PartialObjectMeta, Selector};
use kcm_framework::ownership::{Claims, Dependents, Owner, Owners, adopt_and_release};
use kcm_framework::{Loops, Reconcile, ReconcileError, Session, Source, async_trait};
use kcm_informers::Informer;
use kcm_sandbox_apiserver::{PODS, Sandbox};
use serde_json::{Value, json};

use crate::guarantees::support::{SETS, Setup, descriptor, key, sandbox, set, settle};

/// Adopts the pods that are labelled with the name of a set.
struct Adopts {
    sets: Informer<PartialObjectMeta>,
    pods: Dependents<Pod>,
}

#[async_trait]
impl Reconcile for Adopts {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(set) = self.sets.get(key) else { return Ok(()) };
        let selector: Selector = "set=a".parse().unwrap();
        let owner = Owner { resource: &SETS, meta: &set.metadata };
        let claims = Claims::of(owner, &selector, &self.pods.owned_or_orphaned(owner, Some(&selector)));
        adopt_and_release(session, owner, claims).await?;
        Ok(())
    }
}

fn pod(name: &str, set: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "default", "labels": { "set": set } },
        "spec": { "containers": [{ "name": "main", "image": "image" }] },
    })
}

fn controller_of(sandbox: &Sandbox, pod: &str) -> Option<String> {
    let pod = sandbox.get(&PODS, &key(pod)).unwrap();
    Some(pod["metadata"]["ownerReferences"][0]["name"].as_str()?.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_plugin_adopts_and_releases_as_the_built_in_controllers_do() {
    let sandbox = sandbox();
    sandbox.create(&SETS, set("a", 0)).unwrap();
    sandbox.create(&PODS, pod("before", "a")).unwrap();
    let _manager = Setup::on(&sandbox)
        .controller(descriptor("adopting-controller"), |context| {
            let mut described = context.control_loop("adopting");
            let sets = described.primary_for::<PartialObjectMeta>(Source::of(SETS));
            let owners = Owners::of(SETS, sets.clone(), |_| {
                static SELECTOR: std::sync::LazyLock<Selector> = std::sync::LazyLock::new(|| "set=a".parse().unwrap());
                Some(&SELECTOR)
            });
            let pods = described.watches::<Pod, _>(move |change| owners.keys(change));
            let adopts = described.reconcile(Adopts { sets, pods: Dependents::of(&pods) });
            async move { Ok(Loops::new().with(adopts)) }
        })
        .start();
    settle().await;
    assert_eq!(controller_of(&sandbox, "before").as_deref(), Some("a"));
    sandbox.create(&PODS, pod("after", "a")).unwrap();
    sandbox.create(&PODS, pod("other", "b")).unwrap();
    settle().await;
    assert_eq!(controller_of(&sandbox, "after").as_deref(), Some("a"));
    assert_eq!(controller_of(&sandbox, "other"), None);
    sandbox.patch(&PODS, &key("before"), &json!({ "metadata": { "labels": { "set": "b" } } })).unwrap();
    settle().await;
    assert_eq!(controller_of(&sandbox, "before"), None, "released");
    let gets =
        sandbox.requests().into_iter().filter(|request| request.method == "GET" && request.path.ends_with("/sets/a"));
    assert_eq!(gets.count(), 2, "the owner is read before each adoption");
}
