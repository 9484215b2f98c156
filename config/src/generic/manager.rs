//! The settings of the manager as a whole.

use crate::checks;
use crate::duration::GoDuration;
use crate::row::{Initial, Row};
use crate::value::Value;

const SECTION: &str = "Generic";

/// The rows of the section.
pub(super) const ROWS: &[Row] = &[
    Row::new("allow-missing-controllers", SECTION, Initial::Bool(false)).help("Start even if --controllers names controllers that are not part of this program, with a warning for each. Another controller manager must run them."),
    Row::new("controller-shutdown-timeout", SECTION, Initial::Duration(GoDuration::from_secs(10))).help("Time that running reconciles have to finish after SIGTERM."),
    Row::new("controller-start-interval", SECTION, Initial::Duration(GoDuration::ZERO)).path("Generic.ControllerStartInterval").help("Pause between the starts of two controllers. The actual pause is random, between this and twice this."),
    Row::new("controllers", SECTION, Initial::Strings(&["*"])).path("Generic.Controllers").help("Controllers to run: \"*\" for all that are on by default, \"foo\" to run foo, \"-foo\" not to run it."),
    Row::new("emulated-version", SECTION, Initial::Strings(&[])).help("Kubernetes version to emulate, e.g. 1.36 or kube=1.36. It selects the feature gates and their defaults."),
    Row::new("exit-on-controller-failure", SECTION, Initial::Bool(false)).help("Exit if a controller fails to start or panics, as upstream does. If false, the controller is retried with back-off."),
    Row::new("feature-gates", SECTION, Initial::FeatureGates).help("Feature gates to turn on or off, e.g. Gate=true,Other=false or kube:Gate=true."),
    Row::new("kube-api-burst", SECTION, Initial::Int32(30)).path("Generic.ClientConnection.burst").help("Requests that a client may send at once beyond --kube-api-qps."),
    Row::new("kube-api-content-type", SECTION, Initial::String("application/vnd.kubernetes.protobuf")).path("Generic.ClientConnection.contentType").help("Accepted for compatibility. Requests are sent as JSON; protobuf responses are requested for kinds that support it.").check(content_type),
    Row::new("kube-api-qps", SECTION, Initial::Float32(20.0)).path("Generic.ClientConnection.qps").help("Average number of requests per second of each client."),
    Row::new("min-compatibility-version", SECTION, Initial::Strings(&[])).help("Oldest control-plane version to be compatible with, e.g. 1.36 or kube=1.36. At most --emulated-version."),
    Row::new("min-resync-period", SECTION, Initial::Duration(GoDuration::from_secs(12 * 60 * 60))).path("Generic.MinResyncPeriod").help("Minimum resync period of informers. The actual period is random, between this and twice this."),
    Row::in_file("Generic.Address", SECTION, Initial::String("0.0.0.0")).help("Address of the insecure port of old versions. No effect."),
    Row::in_file("Generic.ClientConnection.acceptContentTypes", SECTION, Initial::String("")).help("Content types that upstream accepts in responses. No effect."),
    Row::in_file("Generic.Port", SECTION, Initial::Int32(0)).help("Insecure port of old versions. No effect."),
    Row::in_file("ServiceController.ConcurrentServiceSyncs", SECTION, Initial::Int32(0)).help("Number of workers of a controller of clouds, which upstream prints. No effect."),
    Row::in_file("DeprecatedController", SECTION, Initial::Map).help("Section without keys, which upstream prints. No effect.").check(no_keys),
];

/// Accepts the content types of client-go. This program sends JSON with every one of them.
fn content_type(value: &Value) -> Result<(), String> {
    checks::one_of(value, &["application/vnd.kubernetes.protobuf", "application/json", "application/cbor", ""])
}

fn no_keys(value: &Value) -> Result<(), String> {
    let is_empty = matches!(value, Value::Map(pairs) if pairs.is_empty());
    if is_empty { Ok(()) } else { Err("must have no keys".to_owned()) }
}
