//! Informers under a manager.

use std::sync::Arc;

use kcm_api::PartialObjectMeta;
use kcm_framework::Running;
use kcm_informers::{Informer, ListOptions};
use parking_lot::Mutex;

use crate::support::{PARTS, Setup, descriptor, part, sandbox, until};

#[tokio::test(start_paused = true)]
async fn the_cache_of_a_resource_that_disappears_is_emptied_and_filled_when_it_returns() {
    let sandbox = sandbox();
    sandbox.create(&PARTS, part("old", "a")).unwrap();
    let kept = Arc::new(Mutex::new(None::<Informer<PartialObjectMeta>>));
    let keep = Arc::clone(&kept);
    let _manager = Setup::on(&sandbox)
        .controller(descriptor("a-controller"), move |context| {
            let parts = context.informers().informer_for(PARTS, ListOptions::default());
            *keep.lock() = Some(parts);
            async { Ok(Some(Running::new())) }
        })
        .start();
    let parts = || kept.lock().clone();
    until("the cache has synced", || parts().is_some_and(|parts| parts.has_synced() && parts.len() == 1)).await;
    let parts = parts().unwrap();
    sandbox.unregister(&PARTS);
    until("the cache is emptied", || parts.is_empty() && !parts.has_synced()).await;
    sandbox.register(PARTS);
    sandbox.create(&PARTS, part("new", "a")).unwrap();
    until("the cache is filled", || parts.has_synced()).await;
    assert_eq!(parts.list()[0].metadata.key.name(), "new");
    assert_eq!(sandbox.open_watches(&PARTS), 1);
}
