//! The event recorders of all controllers, and the task that sends their events.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kcm_client::ApiClient;
use kcm_client::clock::Clock;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Broadcaster, Recorder};
use crate::metrics::Metrics;
use crate::panics::PanicLog;

/// Time for which queued events may be sent at shutdown.
const FLUSH: Duration = Duration::from_secs(5);

/// The event recorders by controller, each with its own queue and correlator, as upstream.
pub(crate) struct Recorders {
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    made: Mutex<Made>,
    broadcasters: mpsc::UnboundedSender<Broadcaster>,
}

struct Made {
    recorders: BTreeMap<&'static str, Recorder>,
    seeds: fastrand::Rng,
}

/// The task that sends the events of all recorders.
pub(crate) struct EventSender {
    broadcasters: tokio::sync::Mutex<mpsc::UnboundedReceiver<Broadcaster>>,
    panics: PanicLog,
}

impl Recorders {
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        panics: PanicLog,
        metrics: Arc<Metrics>,
        seed: u64,
    ) -> (Self, EventSender) {
        let (sender, broadcasters) = mpsc::unbounded_channel();
        let made = Made { recorders: BTreeMap::new(), seeds: fastrand::Rng::with_seed(seed) };
        let recorders = Self { clock, metrics, made: Mutex::new(made), broadcasters: sender };
        (recorders, EventSender { broadcasters: tokio::sync::Mutex::new(broadcasters), panics })
    }

    /// The recorder of `component`, created at the first call, with the client that sends its events.
    pub(crate) fn recorder(&self, component: &'static str, client: impl FnOnce() -> ApiClient) -> Recorder {
        let mut made = self.made.lock();
        if let Some(recorder) = made.recorders.get(component) {
            return recorder.clone();
        }
        let seed = made.seeds.u64(..);
        let client = client().returning_metadata().unfenced();
        let (clock, metrics) = (Arc::clone(&self.clock), Some(Arc::clone(&self.metrics)));
        let (recorder, broadcaster) = Broadcaster::counted(client, component, clock, metrics, seed);
        if self.broadcasters.send(broadcaster).is_err() {
            tracing::debug!(component, "The manager is stopping: no events of this component are sent");
        }
        made.recorders.insert(component, recorder.clone());
        recorder
    }
}

impl EventSender {
    /// Sends events until `cancel`, then the queued ones for a short time.
    pub(crate) async fn run(self: Arc<Self>, cancel: CancellationToken) {
        let mut sending = JoinSet::new();
        let mut broadcasters = self.broadcasters.lock().await;
        while let Some(Some(broadcaster)) = cancel.run_until_cancelled(broadcasters.recv()).await {
            sending.spawn(Arc::clone(&self).send(broadcaster, cancel.clone()));
        }
        // Recorders that were created just before the shutdown have events too.
        while let Ok(broadcaster) = broadcasters.try_recv() {
            sending.spawn(Arc::clone(&self).send(broadcaster, cancel.clone()));
        }
        while sending.join_next().await.is_some() {}
    }

    /// Sends the events of one recorder. An event that causes a panic is lost, and the next one is sent.
    async fn send(self: Arc<Self>, mut broadcaster: Broadcaster, cancel: CancellationToken) {
        while self.panics.catch("events", broadcaster.send_until(cancel.clone(), FLUSH)).await.is_none() {}
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kcm_api::{PartialObjectMeta, View as _};
    use kcm_client::clock::SimulatedClock;
    use kcm_client::{ClientBuilder, Limits, UserAgent};
    use kube::client::Body;

    use super::*;
    use crate::events::{EventType, ObjectReference};

    #[tokio::test(start_paused = true)]
    async fn events_of_a_recorder_made_just_before_the_shutdown_are_sent() {
        let sent = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&sent);
        let server = tower::service_fn(move |_: Request<Body>| {
            *counted.lock() += 1;
            std::future::ready(Ok::<_, std::convert::Infallible>(Response::new(Body::from(b"{}".to_vec()))))
        });
        let user_agent = UserAgent::new("kube-controller-manager", "v1.37.2", "");
        let clients = ClientBuilder::new(kube::Client::new(server, "default"), user_agent, Limits::UNLIMITED);
        let clock = Arc::new(SimulatedClock::starting_at(jiff::Timestamp::UNIX_EPOCH));
        let (recorders, sender) = Recorders::new(clock, PanicLog::new(Metrics::new()), Metrics::new(), 1);
        let object = PartialObjectMeta::decode(r#"{"metadata":{"name":"a"}}"#).unwrap();
        let regarding = ObjectReference::of(&kcm_api::Resource::namespaced("", "v1", "pods", "Pod"), object.meta());
        let client = || clients.client_for("a-controller");
        recorders.recorder("a-controller", client).event(&regarding, EventType::Normal, "Ended", "");
        let cancel = CancellationToken::new();
        cancel.cancel();
        Arc::new(sender).run(cancel).await;
        assert_eq!(*sent.lock(), 1);
    }
}
