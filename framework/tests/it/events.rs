//! How events are sent: in the background, in order, repeated while there is hope.

#![expect(clippy::unwrap_used, reason = "a test fails where its helper does")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use kcm_api::{ResourceVersion, Uid};
use kcm_framework::client::{ClientBuilder, Limits, UserAgent};
use kcm_framework::clock::SimulatedClock;
use kcm_framework::events::{Broadcaster, EventType, ObjectReference, Recorder};
use kube::client::Body;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const GRACE: Duration = Duration::from_secs(5);

/// An API server that takes events, and a recorder that reports to it.
struct Api {
    log: Arc<Mutex<Vec<(Duration, String)>>>,
    recorder: Recorder,
    cancel: CancellationToken,
    tasks: JoinSet<()>,
}

impl Api {
    /// Answers the nth request, of that method, with a status, or breaks the connection.
    fn start(answer: impl Fn(usize, &str) -> Option<u16> + Send + Sync + 'static) -> Self {
        Self::start_with(|_, _| None, answer)
    }

    /// As [`start`](Self::start), with a `Retry-After` in seconds for some requests.
    fn start_with(
        retry_after: impl Fn(usize, &str) -> Option<u64> + Send + Sync + 'static,
        answer: impl Fn(usize, &str) -> Option<u16> + Send + Sync + 'static,
    ) -> Self {
        let answer = Arc::new(answer);
        let retry_after = Arc::new(retry_after);
        let log = Arc::new(Mutex::new(Vec::new()));
        let start = Instant::now();
        let written = Arc::clone(&log);
        let service = tower::service_fn(move |request: Request<Body>| {
            let (log, answer) = (Arc::clone(&written), Arc::clone(&answer));
            let retry_after = Arc::clone(&retry_after);
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await?.to_bytes();
                let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
                let line = format!("{} {} {}", head.method, body["count"], body["message"].as_str().unwrap());
                let tried = log.lock().unwrap().len();
                log.lock().unwrap().push((start.elapsed(), line));
                match answer(tried, head.method.as_str()) {
                    Some(code) => {
                        let body = if code < 300 { "{}" } else { "" };
                        let mut response = Response::builder().status(code);
                        if let Some(seconds) = retry_after(tried, head.method.as_str()) {
                            response = response.header("Retry-After", seconds);
                        }
                        Ok(response.body(Body::from(body.as_bytes().to_vec())).unwrap())
                    }
                    None => Err(kube::Error::Service("connection reset".into())),
                }
            }
        });
        let client = kube::Client::new(service, "default");
        let builder =
            ClientBuilder::new(client, UserAgent::new("kube-controller-manager", "v1", ""), Limits::UNLIMITED);
        let clock = Arc::new(SimulatedClock::starting_at("2026-01-02T03:04:05Z".parse().unwrap()));
        let (recorder, broadcaster) =
            Broadcaster::new(builder.client_for("replicaset-controller"), "replicaset-controller", clock, 7);
        let cancel = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(broadcaster.run(cancel.clone(), GRACE));
        Self { log, recorder, cancel, tasks }
    }

    fn report(&self, message: &str) {
        let regarding = ObjectReference {
            api_version: "apps/v1".to_owned(),
            kind: "ReplicaSet".to_owned(),
            namespace: "a".to_owned(),
            name: "web".to_owned(),
            uid: Uid::from("u"),
            resource_version: ResourceVersion::default(),
            field_path: String::new(),
        };
        self.recorder.event(&regarding, EventType::Normal, "SuccessfulCreate", message);
    }

    async fn settle(&self) {
        tokio::time::sleep(Duration::from_hours(1)).await;
    }

    async fn stop(&mut self) {
        self.cancel.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
    }

    fn lines(&self) -> Vec<String> {
        self.log.lock().unwrap().iter().map(|(_, line)| line.clone()).collect()
    }

    fn times(&self) -> Vec<Duration> {
        self.log.lock().unwrap().iter().map(|(at, _)| *at).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn new_events_are_created_and_repeated_ones_counted_in_order() {
    let api = Api::start(|_, _| Some(201));
    for message in ["x", "y", "x"] {
        api.report(message);
    }
    api.settle().await;
    assert_eq!(api.lines(), ["POST 1 x", "POST 1 y", "PATCH 2 x"]);
}

#[tokio::test(start_paused = true)]
async fn a_counted_event_that_has_expired_is_written_anew_with_its_count() {
    let api = Api::start(|_, method| Some(if method == "PATCH" { 404 } else { 201 }));
    api.report("x");
    api.report("x");
    api.settle().await;
    assert_eq!(api.lines(), ["POST 1 x", "PATCH 2 x", "POST 2 x"]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_event_is_not_tried_again() {
    for code in [403, 409, 422, 500] {
        let api = Api::start(move |_, _| Some(code));
        api.report("x");
        api.settle().await;
        assert_eq!(api.lines().len(), 1, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_tried_twelve_times_ten_seconds_apart() {
    let api = Api::start(|_, _| None);
    api.report("x");
    api.settle().await;
    let times = api.times();
    assert_eq!(times.len(), 12);
    let pauses: Vec<_> = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    assert!(pauses[0] <= Duration::from_secs(10), "the first pause is cut at random");
    assert!(pauses[1..].iter().all(|pause| pause.as_secs() == 10), "{pauses:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_patience_is_asked_again() {
    let api = Api::start(|tried, _| Some(if tried < 2 { 429 } else { 201 }));
    api.report("x");
    api.settle().await;
    assert_eq!(api.lines().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_years_of_patience_is_asked_again_after_a_minute() {
    let api = Api::start_with(
        |tried, _| (tried == 0).then_some(u64::MAX),
        |tried, _| Some(if tried == 0 { 429 } else { 201 }),
    );
    api.report("x");
    api.settle().await;
    let times = api.times();
    assert_eq!(times.len(), 2);
    assert_eq!(times[1].saturating_sub(times[0]), Duration::from_mins(1));
}

#[tokio::test(start_paused = true)]
async fn reporting_never_waits_and_drops_what_finds_no_room() {
    let api = Api::start(|_, _| Some(201));
    let start = Instant::now();
    for number in 0..1200 {
        api.report(&number.to_string());
    }
    assert_eq!((start.elapsed(), api.recorder.dropped()), (Duration::ZERO, 200));
}

#[tokio::test(start_paused = true)]
async fn what_waits_at_the_end_is_still_sent_once() {
    let mut api = Api::start(|_, _| Some(201));
    api.report("x");
    api.report("y");
    api.stop().await;
    assert_eq!(api.lines(), ["POST 1 x", "POST 1 y"]);
    api.report("z");
    assert_eq!(api.recorder.dropped(), 1);

    let mut broken = Api::start(|_, _| None);
    broken.report("x");
    broken.settle().await;
    broken.report("y");
    let start = Instant::now();
    broken.stop().await;
    assert_eq!((broken.lines().last().unwrap().as_str(), start.elapsed()), ("POST 1 y", Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn the_end_cuts_a_pause_short() {
    let mut api = Api::start(|_, _| None);
    api.report("x");
    tokio::time::sleep(Duration::from_secs(15)).await;
    let start = Instant::now();
    api.stop().await;
    assert_eq!(start.elapsed(), Duration::ZERO);
}
