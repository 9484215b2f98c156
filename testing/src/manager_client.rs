//! The connection of the manager under test: it counts writes, and can end with one of them.

use std::sync::Arc;

use http::{Method, Request};
use kcm_sandbox_apiserver::Sandbox;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tower::ServiceExt as _;

/// The accepted writes of the manager, events left out.
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
    /// How many writes the API server has accepted.
    pub(crate) fn accepted(&self) -> usize {
        self.state.lock().accepted
    }

    /// Withholds the answer of the write with this number, counted from 1, and has the manager killed then.
    pub(crate) fn kill_after(&self, number: usize) {
        self.state.lock().kill_after = Some(number);
    }

    /// Waits until the manager is to be killed.
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

/// A client of the API server whose writes are counted.
pub(crate) fn connect(sandbox: &Sandbox, writes: Arc<Writes>) -> kube::Client {
    let service = sandbox.service();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (service, writes) = (service.clone(), Arc::clone(&writes));
        async move {
            let is_write = *request.method() != Method::GET && !request.uri().path().contains("/events");
            let response = service.oneshot(request).await?;
            if is_write && response.status().is_success() && writes.count() {
                // The write has taken effect, and its answer never arrives.
                std::future::pending::<()>().await;
            }
            Ok::<_, kcm_sandbox_apiserver::ConnectionLost>(response)
        }
    });
    kube::Client::new(service, "default")
}
