//! The client of the manager under test: it counts writes, and can kill the manager at one of them.

use std::sync::Arc;

use http::{Method, Request};
use kcm_sandbox_apiserver::Sandbox;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tower::ServiceExt as _;

/// The accepted writes of the manager, without events.
#[derive(Default)]
pub(crate) struct Writes {
    state: Mutex<State>,
    kill: Notify,
}

#[derive(Default)]
struct State {
    accepted: usize,
    kill_after: Option<usize>,
}

impl Writes {
    /// Returns the number of accepted writes.
    pub(crate) fn accepted(&self) -> usize {
        self.state.lock().accepted
    }

    /// Withholds the response of the write with this number, counted from 1, and kills the manager then.
    pub(crate) fn kill_after(&self, number: usize) {
        self.state.lock().kill_after = Some(number);
    }

    /// Waits until the manager has to be killed.
    pub(crate) async fn killed(&self) {
        self.kill.notified().await;
    }

    /// Counts an accepted write; returns whether it is the last of this manager.
    fn count(&self) -> bool {
        let mut state = self.state.lock();
        state.accepted += 1;
        let is_last = state.kill_after == Some(state.accepted);
        if is_last {
            self.kill.notify_one();
        }
        is_last
    }
}

/// Returns a client of the API server that counts writes.
pub(crate) fn connect(sandbox: &Sandbox, writes: Arc<Writes>) -> kube::Client {
    let service = sandbox.service();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (service, writes) = (service.clone(), Arc::clone(&writes));
        async move {
            let is_write = *request.method() != Method::GET && !request.uri().path().contains("/events");
            let response = service.oneshot(request).await?;
            if is_write && response.status().is_success() && writes.count() {
                // The write has taken effect, and its response never arrives.
                std::future::pending::<()>().await;
            }
            Ok::<_, kcm_sandbox_apiserver::ConnectionLost>(response)
        }
    });
    kube::Client::new(service, "default")
}
