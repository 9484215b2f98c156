//! Informers of several namespaces, read as one.

use kcm_informers::MultiNamespaceInformer;

use super::*;

/// A widget in another namespace than [`widget`]'s.
fn in_namespace(namespace: &str, name: &str, version: u64) -> String {
    widget(name, version).replace(r#""namespace":"a""#, &format!(r#""namespace":"{namespace}""#))
}

fn of_namespaces(factory: &kcm_informers::Factory, namespaces: &[&str]) -> MultiNamespaceInformer<Widget> {
    namespaces.iter().map(|namespace| factory.informer(ListOptions::namespace(*namespace))).collect()
}

/// The requests of the informers of two namespaces, by namespace.
async fn asked_for_two(peer: &mut Peer) -> [Asked; 2] {
    let mut asked = [peer.asked_for("streaming list").await, peer.asked_for("streaming list").await];
    asked.sort_by(|one, other| one.uri.path().cmp(other.uri.path()));
    asked
}

fn serve(asked: Asked, version: u64, objects: &[String]) -> Stream {
    let stream = asked.accept();
    for object in objects {
        stream.event("ADDED", object);
    }
    stream.end_of_initial_events(version);
    stream
}

fn keys(widgets: &[std::sync::Arc<Widget>]) -> Vec<String> {
    widgets.iter().map(|widget| widget.metadata.key.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn reads_the_objects_of_all_its_namespaces_in_the_order_of_keys() {
    let (client, mut peer) = peer();
    let factory = factory(client);
    let both = of_namespaces(&factory, &["b", "a"]);
    let by_size = both.index("size", |widget| [widget.size]);
    factory.start();
    let [of_a, of_b] = asked_for_two(&mut peer).await;
    assert_eq!(of_a.uri.path(), "/apis/example.com/v1/namespaces/a/widgets");
    assert_eq!(of_b.uri.path(), "/apis/example.com/v1/namespaces/b/widgets");
    let of_b = serve(of_b, 5, &[in_namespace("b", "x", 1)]);
    let _of_a = serve(of_a, 7, &[widget("y", 3), widget("x", 2)]);
    both.wait_synced().await;
    assert_eq!(keys(&both.list()), ["a/x", "a/y", "b/x"]);
    assert_eq!(keys(&by_size.get(&1)), ["a/x", "a/y", "b/x"]);
    assert_eq!((both.len(), by_size.count(&1)), (3, 3));
    assert_eq!(keys(&both.in_namespace("b")), ["b/x"]);
    assert!(both.in_namespace("c").is_empty());
    let of = |namespace: &str| both.get(&ObjectKey::namespaced(namespace, "x")).map(|x| x.metadata.key.to_string());
    assert_eq!((of("a").as_deref(), of("b").as_deref(), of("c")), (Some("a/x"), Some("b/x"), None));
    of_b.event("DELETED", &in_namespace("b", "x", 8));
    yield_to_informer().await;
    assert_eq!(keys(&both.list()), ["a/x", "a/y"]);
    assert_eq!(keys(&by_size.get(&1)), ["a/x", "a/y"]);
}

#[tokio::test(start_paused = true)]
async fn has_synced_once_each_of_its_namespaces_has() {
    let (client, mut peer) = peer();
    let factory = factory(client);
    let both = of_namespaces(&factory, &["a", "b"]);
    factory.start();
    let [of_a, of_b] = asked_for_two(&mut peer).await;
    let _of_a = serve(of_a, 5, &[widget("x", 1)]);
    yield_to_informer().await;
    assert!(!both.has_synced());
    assert_eq!(keys(&both.list()), ["a/x"], "what has synced can be read");
    let _of_b = serve(of_b, 5, &[]);
    both.wait_synced().await;
    assert!(both.has_synced());
    assert!(of_namespaces(&factory, &[]).has_synced(), "of no namespace");
}

#[tokio::test(start_paused = true)]
async fn shares_the_watch_of_each_namespace_with_every_other_reader_of_it() {
    let (client, mut peer) = peer();
    let factory = factory(client);
    let both = of_namespaces(&factory, &["a", "b", "a"]);
    let alone = factory.informer::<Widget>(ListOptions::namespace("a"));
    factory.start();
    let [of_a, of_b] = asked_for_two(&mut peer).await;
    let _streams = [serve(of_a, 5, &[widget("x", 1)]), serve(of_b, 5, &[])];
    both.wait_synced().await;
    assert_eq!(contents(&alone), "x@1");
    assert!(peer.is_quiet_for(seconds(60)).await);
    for status in factory.status() {
        assert!(status.also_watched_as.is_empty(), "other namespaces are other objects: {:?}", status.also_watched_as);
    }
}
