//! Parts of views: decoded if an enabled controller needs them, and read only by controllers that declare the need.

use std::sync::Arc;

use kcm_api::views::{Pod, PodVolumes};
use kcm_api::{DecodeContext, Need, Needs, View as _};
use kcm_config::gates::POD_DELETION_COST;
use kcm_framework::{ControllerDescriptor, Loops};
use kcm_informers::{Informer, ListOptions};
use kcm_sandbox_apiserver::{PODS, Sandbox};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::guarantees::support::{Initialized, Setup, descriptor, until};

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web"}}],
        },
    })
}

const WITH_VOLUMES: ControllerDescriptor =
    descriptor("volumes-controller").needs(&[Need::part::<PodVolumes>()]).required_gates(&[POD_DELETION_COST]);

/// The pod in the cache of a controller without needs, beside the controllers that `setup` has.
async fn cached(sandbox: &Sandbox, setup: Setup) -> Arc<Pod> {
    sandbox.create(&PODS, pod()).unwrap();
    let slot: Arc<Mutex<Option<Informer<Pod>>>> = Arc::default();
    let informer = Arc::clone(&slot);
    let _manager = setup
        .controller(descriptor("other-controller"), move |context| {
            *informer.lock() = Some(context.informers().informer::<Pod>(ListOptions::default()));
            async { Initialized::Ok(Loops::new()) }
        })
        .start();
    until("the pod is cached", || slot.lock().as_ref().is_some_and(|pods| pods.len() == 1)).await;
    let pods = slot.lock().as_ref().unwrap().list();
    Arc::clone(&pods[0])
}

/// The claims of the pod, if its volumes are decoded.
fn claims(pod: &Pod) -> Vec<String> {
    let volumes = [Need::part::<PodVolumes>()].into_iter().collect::<Needs>().reader::<PodVolumes>().unwrap().of(pod);
    volumes.volumes.iter().filter_map(|volume| volume.claim_name.as_deref()).map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn a_part_is_decoded_where_an_enabled_controller_needs_it() {
    let sandbox = Sandbox::default();
    let setup = Setup::on(&sandbox).controller(WITH_VOLUMES, |context| {
        let reader = context.part::<PodVolumes>().map(drop);
        async move {
            reader?;
            Initialized::Ok(Loops::new())
        }
    });
    assert_eq!(claims(&*cached(&sandbox, setup).await), ["data-web"]);
}

#[tokio::test(start_paused = true)]
async fn a_part_that_no_enabled_controller_needs_is_not_decoded() {
    let not_needed = |pod: &Pod| {
        let context = Arc::new(DecodeContext::new::<Pod>(Arc::default(), &Needs::default()));
        let mut expected = context.scope(|| Pod::decode(&json!({"metadata": {}}).to_string())).unwrap();
        expected.metadata = pod.metadata.clone();
        expected.phase = pod.phase;
        *pod == expected
    };
    for setup in [(|setup: Setup| setup.select(&["other-controller"])) as fn(Setup) -> Setup, |setup| {
        setup.argument("--feature-gates=PodDeletionCost=false")
    }] {
        let sandbox = Sandbox::default();
        let with_volumes = |_| async { Initialized::Ok(Loops::new()) };
        let pod = cached(&sandbox, setup(Setup::on(&sandbox).controller(WITH_VOLUMES, with_volumes))).await;
        assert!(not_needed(&pod), "{pod:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_part_that_is_read_without_being_declared_is_an_error_at_start() {
    let sandbox = Sandbox::default();
    let errors: Arc<Mutex<Vec<String>>> = Arc::default();
    let known = Arc::clone(&errors);
    // That another controller declares it does not help: alone, this one would see no volumes.
    let setup = Setup::on(&sandbox).controller(WITH_VOLUMES, |_| async { Initialized::Ok(Loops::new()) }).controller(
        descriptor("careless-controller"),
        move |context| {
            let reader = context.part::<PodVolumes>();
            known.lock().extend(reader.err().map(|error| error.to_string()));
            async { Initialized::Ok(Loops::new()) }
        },
    );
    let _manager = setup.start();
    until("it is refused", || !errors.lock().is_empty()).await;
    assert_eq!(
        errors.lock()[0],
        "PodVolumes of Pod is not decoded: add `Need::part::<PodVolumes>()` to the needs of the controller's descriptor"
    );
}
