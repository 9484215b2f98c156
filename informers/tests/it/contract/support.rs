//! An API server whose every answer a test gives by hand, and a kind to serve.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::channel::mpsc as body;
use http::{HeaderMap, Request, Response, Uri};
use http_body::Frame;
use http_body_util::StreamBody;
use kcm_api::{DecodeError, KnownView, Meta, ObjectKey, Resource, View};
use kcm_informers::{Change, Connection, Factory, FactoryOptions, HandlerOptions, Informer, Origin};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

type AnswerBody = StreamBody<body::UnboundedReceiver<Result<Frame<Bytes>, std::io::Error>>>;
type Answer = Result<Response<AnswerBody>, std::io::Error>;

/// The server's side of all requests.
pub(crate) struct Peer {
    asked: mpsc::UnboundedReceiver<Asked>,
    /// The revision of the storage, which is the response to a list of one object. Unset, it never goes back.
    pub(crate) revision: u64,
    /// Number of requests for the revision.
    pub(crate) checks: usize,
}

/// A request that waits for its answer. Dropped, it is a connection that broke before any.
pub(crate) struct Asked {
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    answer: oneshot::Sender<Answer>,
}

/// The body of an answer that is being sent. Dropped, it ends in good order.
pub(crate) struct Stream {
    body: body::UnboundedSender<Result<Frame<Bytes>, std::io::Error>>,
}

/// A client, and the server behind it.
pub(crate) fn peer() -> (Client, Peer) {
    let (ask, asked) = mpsc::unbounded_channel();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (answer, answered) = oneshot::channel();
        let asked = Asked { uri: request.uri().clone(), headers: request.headers().clone(), answer };
        let sent = ask.send(asked);
        async move {
            sent.map_err(|_| std::io::Error::other("the server is gone"))?;
            answered.await.unwrap_or_else(|_| Err(std::io::Error::other("connection reset")))
        }
    });
    (Client::new(service, "default"), Peer { asked, revision: u64::MAX, checks: 0 })
}

impl Peer {
    /// The next request; fails the test when none comes for an hour.
    pub(crate) async fn asked(&mut self) -> Asked {
        loop {
            let asked = tokio::time::timeout(Duration::from_hours(1), self.asked.recv()).await;
            let asked = asked.expect("a request must come").expect("the client must be alive");
            if asked.query("limit").as_deref() != Some("1") {
                return asked;
            }
            self.checks += 1;
            asked.page(self.revision, "", &[]);
        }
    }

    /// The next request, which must ask this.
    pub(crate) async fn asked_for(&mut self, question: &str) -> Asked {
        let asked = self.asked().await;
        assert_eq!(asked.question(), question);
        asked
    }

    /// Returns `true` if no request but for the revision comes within that time.
    pub(crate) async fn is_silent_for(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.asked()).await.is_err()
    }

    /// Returns `true` if no request comes within that time.
    pub(crate) async fn is_quiet_for(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.asked.recv()).await.is_err()
    }

    /// Accepts a streaming list, and sends it.
    pub(crate) async fn serves(&mut self, version: u64, objects: &[String]) -> Stream {
        let stream = self.asked_for("streaming list").await.accept();
        for object in objects {
            stream.event("ADDED", object);
        }
        stream.end_of_initial_events(version);
        stream
    }
}

impl Asked {
    pub(crate) fn query(&self, name: &str) -> Option<String> {
        let query = self.uri.query().unwrap_or_default();
        form_urlencoded::parse(query.as_bytes()).find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
    }

    /// Returns the request in the words of the protocol.
    pub(crate) fn question(&self) -> String {
        if self.uri.path() == "/readyz" {
            return "probe".to_owned();
        }
        let is_watch = self.query("watch").is_some();
        match (is_watch, self.query("sendInitialEvents"), self.query("resourceVersion"), self.query("continue")) {
            (true, Some(_), None, None) => "streaming list".to_owned(),
            (true, None, Some(version), None) => format!("watch from {version}"),
            (false, None, None, None) => "list".to_owned(),
            (false, None, None, Some(token)) => format!("list from {token}"),
            _other => panic!("an odd request: {}", self.uri),
        }
    }

    /// Answers, with a body to be sent.
    pub(crate) fn accept(self) -> Stream {
        self.answer(200)
    }

    /// Answers in protobuf, with a body to be sent.
    pub(crate) fn accept_protobuf(self) -> Stream {
        self.answer_as(200, "application/vnd.kubernetes.protobuf;stream=watch")
    }

    pub(crate) fn refuse_in_protobuf(self, code: u16, status: &[u8]) {
        self.answer_as(code, "application/vnd.kubernetes.protobuf").send_bytes(status);
    }

    fn answer(self, code: u16) -> Stream {
        self.answer_as(code, "application/json")
    }

    fn answer_as(self, code: u16, content_type: &str) -> Stream {
        let (sender, receiver) = body::unbounded();
        let response = Response::builder().status(code).header("content-type", content_type);
        let response = response.body(StreamBody::new(receiver)).expect("code and type must be valid");
        assert!(self.answer.send(Ok(response)).is_ok(), "the client must wait for the answer");
        Stream { body: sender }
    }

    pub(crate) fn refuse(self, code: u16, reason: &str, message: &str) {
        self.answer(code).send(&status(code, reason, message));
    }

    /// Refuses in plain text.
    pub(crate) fn refuse_with(self, code: u16, body: &str) {
        self.answer(code).send(body);
    }

    /// Answers with one page.
    pub(crate) fn page(self, version: u64, token: &str, items: &[String]) {
        let metadata = format!(r#"{{"resourceVersion":"{version}","continue":"{token}"}}"#);
        let page = format!(r#"{{"kind":"WidgetList","metadata":{metadata},"items":[{}]}}"#, items.join(","));
        self.accept().send(&page);
    }
}

impl Stream {
    pub(crate) fn send(&self, text: &str) {
        self.send_bytes(text.as_bytes());
    }

    pub(crate) fn send_bytes(&self, bytes: &[u8]) {
        // A client that has hung up is what some tests are about; they look at `is_open`.
        drop(self.body.unbounded_send(Ok(Frame::data(Bytes::from(bytes.to_owned())))));
    }

    pub(crate) fn event(&self, kind: &str, object: &str) {
        self.send(&format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n"));
    }

    pub(crate) fn bookmark(&self, version: u64) {
        self.event("BOOKMARK", &format!(r#"{{"metadata":{{"resourceVersion":"{version}"}}}}"#));
    }

    pub(crate) fn end_of_initial_events(&self, version: u64) {
        let annotations = r#"{"k8s.io/initial-events-end":"true"}"#;
        self.event(
            "BOOKMARK",
            &format!(r#"{{"metadata":{{"resourceVersion":"{version}","annotations":{annotations}}}}}"#),
        );
    }

    pub(crate) fn error(&self, code: u16, reason: &str, message: &str) {
        self.event("ERROR", &status(code, reason, message));
    }

    /// Ends the body in good order.
    pub(crate) fn end(self) {
        drop(self);
    }

    pub(crate) fn break_off(self) {
        drop(self.body.unbounded_send(Err(std::io::Error::other("connection reset"))));
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.body.is_closed()
    }
}

fn status(code: u16, reason: &str, message: &str) -> String {
    format!(r#"{{"kind":"Status","code":{code},"reason":"{reason}","message":"{message}"}}"#)
}

/// A kind with one field, which must be a number.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Widget {
    pub(crate) metadata: Meta,
    pub(crate) size: u32,
}

impl View for Widget {
    fn decode(json: &str) -> Result<Self, DecodeError> {
        Ok(serde_json::from_str(json)?)
    }

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl KnownView for Widget {
    const RESOURCE: Resource = Resource::namespaced("example.com", "v1", "widgets", "Widget");
}

/// JSON of a widget in namespace `a`, its uid made from its name.
pub(crate) fn widget(name: &str, version: u64) -> String {
    widget_with(name, version, &format!("uid-{name}"), "", "1")
}

/// JSON of a widget with more metadata and any size.
pub(crate) fn widget_with(name: &str, version: u64, uid: &str, metadata: &str, size: &str) -> String {
    format!(
        r#"{{"metadata":{{"namespace":"a","name":"{name}","uid":"{uid}","resourceVersion":"{version}"{metadata}}},"size":{size}}}"#
    )
}

pub(crate) fn terminating(name: &str, version: u64) -> String {
    widget_with(name, version, &format!("uid-{name}"), r#","deletionTimestamp":"2030-01-01T00:00:00Z""#, "1")
}

/// A widget whose size is not a number.
pub(crate) fn undecodable(name: &str, version: u64) -> String {
    widget_with(name, version, &format!("uid-{name}"), "", r#""big""#)
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("a", name)
}

/// A factory whose connection is monitored until the future is dropped.
pub(crate) fn monitored(client: &Client) -> (Factory, Connection, impl Future<Output = ()> + use<>) {
    let (connection, monitor) = Connection::new(7);
    let mut options = FactoryOptions::new(client.clone(), 7);
    options.connection = connection.clone();
    let client = client.clone();
    let monitoring = async move {
        monitor.run(&client).await;
    };
    (Factory::new(options), connection, monitoring)
}

pub(crate) fn factory(client: Client) -> Factory {
    Factory::new(FactoryOptions::new(client, 7))
}

/// Keys and versions in a cache: `x@1 y@2`.
pub(crate) fn contents(informer: &Informer<Widget>) -> String {
    informer.list().iter().map(|widget| label(widget)).collect::<Vec<_>>().join(" ")
}

pub(crate) fn label(widget: &Widget) -> String {
    format!("{}@{}", widget.metadata.key.name(), widget.metadata.resource_version)
}

/// The notifications of a subscriber, as text.
#[derive(Clone, Default)]
pub(crate) struct Notifications(Arc<Mutex<Vec<String>>>);

impl Notifications {
    /// Everything since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }

    /// Returns `true` if the handler or hook that writes to this was dropped.
    pub(crate) fn is_unused(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    pub(crate) fn note(&self, text: impl Into<String>) {
        self.0.lock().push(text.into());
    }

    pub(crate) fn change(&self, change: &Change<Widget>, origin: Origin) {
        let text = match change {
            Change::Added(new) => format!("added {}", label(new)),
            Change::Updated { old, new } => format!("updated {} to {}", label(old), label(new)),
            Change::Undecodable { last } => format!("undecodable {}", label(last)),
            Change::Deleted { last, final_state_known: true } => format!("removed {}", label(last)),
            Change::Deleted { last, final_state_known: false } => format!("removed perhaps {}", label(last)),
        };
        self.note(match origin {
            Origin::Initial => format!("{text} (initial)"),
            Origin::Live => text,
            Origin::Resync => format!("{text} (resync)"),
        });
    }
}

/// Subscribes, and notes everything.
pub(crate) fn add_event_handler(informer: &Informer<Widget>, name: &'static str) -> Notifications {
    let notified = Notifications::default();
    let notes = notified.clone();
    informer.add_event_handler(HandlerOptions::named(name), move |change, origin| {
        notes.change(change, origin);
    });
    notified
}

/// Lets every task do what it can do without time passing.
pub(crate) async fn yield_to_informer() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}
