//! A response that never ends fails its own request alone.

use futures::{FutureExt as _, stream};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use kcm_api::Resource;
use kcm_framework::client::{Cause, Subresource};
use kcm_sandbox_apiserver::Sandbox;
use kube::client::Body;

use crate::guarantees::support::{Options, World, key, sandbox, seconds};

const ENDLESS: Resource = Resource::namespaced("endless.example.com", "v1", "things", "Thing");

/// A client of `sandbox`, behind which an aggregated API sends responses without an end.
fn with_aggregated_api(sandbox: &Sandbox) -> kube::Client {
    let client = sandbox.client();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let client = client.clone();
        async move {
            if !request.uri().path().starts_with("/apis/endless.example.com/") {
                return Ok(client.send(request).await?.map(BodyExt::boxed_unsync));
            }
            let chunk = || Ok::<_, kube::Error>(Frame::data(bytes::Bytes::from_static(&[b' '; 1 << 14])));
            Ok::<_, kube::Error>(http::Response::new(BodyExt::boxed_unsync(StreamBody::new(stream::repeat_with(
                chunk,
            )))))
        }
    });
    kube::Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn an_aggregated_api_whose_responses_never_end_fails_only_the_keys_that_read_it() {
    let sandbox = sandbox();
    let options = Options { client: Some(with_aggregated_api(&sandbox)), ..Options::default() };
    let world = World::with(options, &sandbox, |turn| {
        async move {
            if turn.key.name() == "reads" {
                let read = turn.session.api().get_raw(&ENDLESS, &key("web"), Subresource::None).await;
                assert!(matches!(read.as_ref().unwrap_err().cause(), Cause::TooLarge { .. }), "{read:?}");
                read?;
            }
            turn.create_missing().await
        }
        .boxed()
    })
    .await;
    world.create_set("reads", 1);
    world.create_set("other", 1);
    tokio::time::sleep(seconds(10)).await;
    assert!(world.failures("reads") > 3 && world.has_result("transient"));
    assert!(matches!(&world.parts()[..], [part] if part.starts_with("other-")), "{:?}", world.parts());
}
