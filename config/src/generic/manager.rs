//! The settings of the manager as a whole.

use crate::checks;
use crate::duration::GoDuration;
use crate::row::{Initial, Row};
use crate::value::Value;

const SECTION: &str = "Generic";

/// The rows of the section.
pub(super) const ROWS: &[Row] = &[
    Row::new("allow-missing-controllers", SECTION, Initial::Bool(false)).help("Start although --controllers names controllers that this program does not have, with a warning for each. A cluster needs them: let another controller manager run them."),
    Row::new("controller-shutdown-timeout", SECTION, Initial::Duration(GoDuration::from_secs(10))).help("How long running controllers may take to finish when the program stops."),
    Row::new("controller-start-interval", SECTION, Initial::Duration(GoDuration::ZERO)).path("Generic.ControllerStartInterval").help("The pause between the starts of two controllers; the pause taken is random, between this and twice this."),
    Row::new("controllers", SECTION, Initial::Strings(&["*"])).path("Generic.Controllers").help("The controllers to run: '*' for all that are on by default, 'foo' to run foo, '-foo' not to run it."),
    Row::new("emulated-version", SECTION, Initial::Strings(&[])).help("Behave as this version of Kubernetes, as 1.35 or kube=1.35: the defaults of feature gates follow from it."),
    Row::new("exit-on-controller-failure", SECTION, Initial::Bool(false)).help("End the process when a controller fails to start or panics, as upstream. Otherwise what failed is tried again with back-off."),
    Row::new("feature-gates", SECTION, Initial::FeatureGates).help("Feature gates to turn on or off, as Gate=true,Other=false or kube:Gate=true."),
    Row::new("kube-api-burst", SECTION, Initial::Int32(30)).path("Generic.ClientConnection.burst").help("How many requests a client may send to the API server at once, above --kube-api-qps."),
    Row::new("kube-api-content-type", SECTION, Initial::String("application/vnd.kubernetes.protobuf")).path("Generic.ClientConnection.contentType").help("The content type that upstream sends requests in. It is accepted, but requests are sent as JSON, and protobuf is asked for where this program decodes it.").check(content_type),
    Row::new("kube-api-qps", SECTION, Initial::Float32(20.0)).path("Generic.ClientConnection.qps").help("How many requests a second a client may send to the API server over time."),
    Row::new("min-compatibility-version", SECTION, Initial::Strings(&[])).help("The oldest version of the control plane beside this program, as 1.35 or kube=1.35; at most --emulated-version."),
    Row::new("min-resync-period", SECTION, Initial::Duration(GoDuration::from_secs(12 * 60 * 60))).path("Generic.MinResyncPeriod").help("Minimum resync period of informers; the actual period is random, between this and twice this."),
    Row::in_file("Generic.Address", SECTION, Initial::String("0.0.0.0")).help("The address of the port that upstream once served without encryption. It has no effect, as upstream."),
    Row::in_file("Generic.ClientConnection.acceptContentTypes", SECTION, Initial::String("")).help("The content types that upstream accepts in responses. It has no effect here."),
    Row::in_file("Generic.Port", SECTION, Initial::Int32(0)).help("The port that upstream once served without encryption. It has no effect, as upstream."),
    Row::in_file("DeprecatedController", SECTION, Initial::Map).help("A section without keys, as upstream prints it.").check(no_keys),
];

/// What client-go can send. What is sent here is JSON, whichever of them is given.
fn content_type(value: &Value) -> Result<(), String> {
    checks::one_of(value, &["application/vnd.kubernetes.protobuf", "application/json", "application/cbor", ""])
}

fn no_keys(value: &Value) -> Result<(), String> {
    let is_empty = matches!(value, Value::Map(pairs) if pairs.is_empty());
    if is_empty { Ok(()) } else { Err("must have no keys".to_owned()) }
}
