//! The time from a pod's readiness, or from the write of an address into an `Endpoints` object, to its ready endpoint in
//! a slice, as a client that watches both sees it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use anyhow::Result;
use futures::try_join;
use kube::api::WatchEvent;
use serde_json::Value;
use tokio::time::Instant;

use super::objects::WHOLE;
use super::workload::Workload;

const PODS: &str = "/api/v1/namespaces/bench/pods";
const ENDPOINTS: &str = "/api/v1/namespaces/bench/endpoints";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/bench/endpointslices";

/// What the watches of pods, `Endpoints` and slices have shown, over all phases of a scenario.
#[derive(Default)]
pub(super) struct Seen {
    /// How far each pod has come, by uid, and each address of `Endpoints`, by itself.
    progress: HashMap<String, Progress>,
    /// The endpoints of each slice, by its name.
    slices: HashMap<String, Endpoints>,
    latencies: Vec<Duration>,
}

/// How far a pod or an address has come.
#[derive(Clone, Copy)]
enum Progress {
    /// It became ready, or was written, then.
    Ready(Instant),
    /// Its endpoint was seen first: the two watches are not ordered.
    Served,
    /// Both were seen.
    Measured,
}

/// How many endpoints there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Endpoints {
    pub(super) all: usize,
    /// How many of them are ready.
    pub(super) ready: usize,
}

impl Seen {
    /// The endpoints of all slices.
    pub(super) fn endpoints(&self) -> Endpoints {
        self.slices
            .values()
            .fold(Endpoints::default(), |sum, of| Endpoints { all: sum.all + of.all, ready: sum.ready + of.ready })
    }

    /// How many slices there are.
    pub(super) fn slices(&self) -> usize {
        self.slices.len()
    }

    /// How many pods or addresses have been measured since the latencies were taken.
    pub(super) fn measured(&self) -> usize {
        self.latencies.len()
    }

    /// Takes the latencies of the pods or addresses that were measured since the last call.
    pub(super) fn take_latencies(&mut self) -> Vec<Duration> {
        std::mem::take(&mut self.latencies)
    }

    fn see_pod(&mut self, event: &WatchEvent<Value>, now: Instant) {
        let (WatchEvent::Added(pod) | WatchEvent::Modified(pod)) = event else { return };
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        let is_ready = conditions.into_iter().any(|it| it["type"] == "Ready" && it["status"] == "True");
        let Some(uid) = pod["metadata"]["uid"].as_str().filter(|_| is_ready) else { return };
        self.see_ready(uid, now);
    }

    fn see_endpoints(&mut self, event: &WatchEvent<Value>, now: Instant) {
        let (WatchEvent::Added(endpoints) | WatchEvent::Modified(endpoints)) = event else { return };
        let subsets = endpoints["subsets"].as_array().into_iter().flatten();
        for address in subsets.filter_map(|it| it["addresses"].as_array()).flatten() {
            if let Some(ip) = address["ip"].as_str() {
                self.see_ready(ip, now);
            }
        }
    }

    fn see_ready(&mut self, id: &str, now: Instant) {
        match self.progress.get(id) {
            None => {
                self.progress.insert(id.to_owned(), Progress::Ready(now));
            }
            Some(Progress::Served) => self.measure(id, Duration::ZERO),
            Some(Progress::Ready(_) | Progress::Measured) => {}
        }
    }

    fn see_slice(&mut self, event: &WatchEvent<Value>, now: Instant) {
        let (slice, is_there) = match event {
            WatchEvent::Added(slice) | WatchEvent::Modified(slice) => (slice, true),
            WatchEvent::Deleted(slice) => (slice, false),
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => return,
        };
        let name = slice["metadata"]["name"].as_str().unwrap_or_default();
        if !is_there {
            self.slices.remove(name);
            return;
        }
        let mut endpoints = Endpoints::default();
        for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
            endpoints.all += 1;
            if endpoint["conditions"]["ready"] != true {
                continue;
            }
            endpoints.ready += 1;
            // That of a pod names it.
            let id = endpoint["targetRef"]["uid"].as_str().or_else(|| endpoint["addresses"][0].as_str());
            let Some(id) = id else { continue };
            match self.progress.get(id) {
                None => {
                    self.progress.insert(id.to_owned(), Progress::Served);
                }
                Some(Progress::Ready(since)) => self.measure(id, now.duration_since(*since)),
                Some(Progress::Served | Progress::Measured) => {}
            }
        }
        self.slices.insert(name.to_owned(), endpoints);
    }

    fn measure(&mut self, id: &str, latency: Duration) {
        self.latencies.push(latency);
        self.progress.insert(id.to_owned(), Progress::Measured);
    }
}

impl Workload {
    /// Does `work`, and watches pods and slices until `is_done` with what was seen.
    pub(super) async fn watch_endpoints(
        &self,
        seen: &RefCell<Seen>,
        work: impl Future<Output = Result<()>>,
        is_done: impl Fn(&Seen) -> bool,
    ) -> Result<()> {
        self.watch_slices_and(seen, PODS, Seen::see_pod, work, is_done).await
    }

    /// Does `work`, and watches `Endpoints` and slices until `is_done` with what was seen.
    pub(super) async fn watch_mirrored(
        &self,
        seen: &RefCell<Seen>,
        work: impl Future<Output = Result<()>>,
        is_done: impl Fn(&Seen) -> bool,
    ) -> Result<()> {
        self.watch_slices_and(seen, ENDPOINTS, Seen::see_endpoints, work, is_done).await
    }

    /// Does `work`, and watches slices and what they are made of until `is_done` with what was seen.
    async fn watch_slices_and(
        &self,
        seen: &RefCell<Seen>,
        sources: &str,
        see_source: impl Fn(&mut Seen, &WatchEvent<Value>, Instant),
        work: impl Future<Output = Result<()>>,
        is_done: impl Fn(&Seen) -> bool,
    ) -> Result<()> {
        let sources = self.watch_until(sources, WHOLE, |event| {
            see_source(&mut seen.borrow_mut(), &event, Instant::now());
            is_done(&seen.borrow())
        });
        let slices = self.watch_until(SLICES, WHOLE, |event| {
            seen.borrow_mut().see_slice(&event, Instant::now());
            is_done(&seen.borrow())
        });
        let watch = async {
            tokio::select! {
                ended = sources => ended,
                ended = slices => ended,
            }
        };
        try_join!(work, watch).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(uid: &str, ready: &str) -> WatchEvent<Value> {
        let conditions = json!([{ "type": "Initialized", "status": "True" }, { "type": "Ready", "status": ready }]);
        WatchEvent::Modified(json!({ "metadata": { "uid": uid }, "status": { "conditions": conditions } }))
    }

    fn slice(name: &str, endpoints: &[(&str, bool)]) -> Value {
        let endpoint =
            |(uid, ready): &(&str, bool)| json!({ "targetRef": { "uid": uid }, "conditions": { "ready": ready } });
        json!({ "metadata": { "name": name }, "endpoints": endpoints.iter().map(endpoint).collect::<Vec<_>>() })
    }

    fn after(start: Instant, millis: u64) -> Instant {
        start + Duration::from_millis(millis)
    }

    #[test]
    fn a_pod_is_measured_once_from_its_first_readiness_to_its_first_ready_endpoint() {
        let (mut seen, start) = (Seen::default(), Instant::now());
        seen.see_pod(&pod("a", "False"), start);
        seen.see_pod(&pod("a", "True"), after(start, 10));
        seen.see_slice(&WatchEvent::Added(slice("s", &[("a", false)])), after(start, 20));
        seen.see_pod(&pod("a", "True"), after(start, 25));
        seen.see_slice(&WatchEvent::Modified(slice("s", &[("a", true)])), after(start, 40));
        seen.see_slice(&WatchEvent::Modified(slice("s", &[("a", true)])), after(start, 90));
        assert_eq!(seen.take_latencies(), [Duration::from_millis(30)]);
        assert_eq!(seen.measured(), 0, "they were taken");
    }

    #[test]
    fn an_endpoint_that_is_seen_before_its_pod_took_no_time() {
        let (mut seen, start) = (Seen::default(), Instant::now());
        seen.see_slice(&WatchEvent::Added(slice("s", &[("a", true)])), start);
        assert_eq!(seen.measured(), 0);
        seen.see_pod(&pod("a", "True"), after(start, 5));
        assert_eq!(seen.take_latencies(), [Duration::ZERO]);
    }

    #[test]
    fn an_address_is_measured_from_its_first_write_to_its_first_ready_endpoint() {
        let (mut seen, start) = (Seen::default(), Instant::now());
        let written = |ips: &[&str]| {
            let addresses: Vec<Value> = ips.iter().map(|ip| json!({ "ip": ip })).collect();
            WatchEvent::Modified(json!({ "subsets": [{ "addresses": addresses }] }))
        };
        let endpoint = |ip: &str| json!({ "addresses": [ip], "conditions": { "ready": true } });
        let mirrored = |ips: &[&str]| {
            let endpoints: Vec<Value> = ips.iter().map(|ip| endpoint(ip)).collect();
            WatchEvent::Modified(json!({ "metadata": { "name": "s" }, "endpoints": endpoints }))
        };
        seen.see_endpoints(&written(&["10.0.0.1"]), start);
        seen.see_endpoints(&written(&["10.0.0.1", "10.0.0.2"]), after(start, 10));
        seen.see_slice(&mirrored(&["10.0.0.1", "10.0.0.2", "10.0.0.3"]), after(start, 40));
        seen.see_endpoints(&written(&["10.0.0.3"]), after(start, 50));
        assert_eq!(seen.take_latencies(), [40, 30, 0].map(Duration::from_millis));
    }

    #[test]
    fn slices_are_counted_as_they_are_now() {
        let (mut seen, now) = (Seen::default(), Instant::now());
        seen.see_slice(&WatchEvent::Added(slice("s", &[("a", true), ("b", false)])), now);
        seen.see_slice(&WatchEvent::Added(slice("t", &[("c", true)])), now);
        assert_eq!((seen.slices(), seen.endpoints()), (2, Endpoints { all: 3, ready: 2 }));
        seen.see_slice(&WatchEvent::Modified(slice("s", &[])), now);
        seen.see_slice(&WatchEvent::Deleted(slice("t", &[("c", true)])), now);
        assert_eq!((seen.slices(), seen.endpoints()), (1, Endpoints::default()));
    }
}
