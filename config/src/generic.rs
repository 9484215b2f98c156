//! The settings that belong to no single controller.

use crate::duration::GoDuration;
use crate::row::{Initial, Row};

/// The flag that names the configuration file. It has no key in the file.
pub const CONFIG: &str = "config";

/// The rows of the generic settings.
pub const ROWS: &[Row] = &[
    Row::new("controller-start-interval", "Generic", Initial::Duration(GoDuration::ZERO))
        .path("Generic.ControllerStartInterval")
        .help(
            "The pause between the starts of two controllers; the pause taken is random, between this and twice this.",
        ),
    Row::new("controllers", "Generic", Initial::Strings(&["*"]))
        .path("Generic.Controllers")
        .help("The controllers to run: '*' for all that are on by default, 'foo' to run foo, '-foo' not to run it."),
    Row::new("feature-gates", "Generic", Initial::FeatureGates)
        .help("Feature gates to turn on or off, as Gate=true,Other=false."),
    Row::new("kube-api-burst", "Generic", Initial::Int32(30))
        .path("Generic.ClientConnection.burst")
        .help("How many requests a client may send to the API server at once, above --kube-api-qps."),
    Row::new("kube-api-qps", "Generic", Initial::Float32(20.0))
        .path("Generic.ClientConnection.qps")
        .help("How many requests a second a client may send to the API server over time."),
    Row::new("leader-elect", "Generic", Initial::Bool(true))
        .path("Generic.LeaderElection.leaderElect")
        .help("Take the lease before running controllers, so that of several replicas only one acts."),
    Row::new("min-resync-period", "Generic", Initial::Duration(GoDuration::from_secs(12 * 60 * 60)))
        .path("Generic.MinResyncPeriod")
        .help("Minimum resync period of informers; the actual period is random, between this and twice this."),
    Row::new("v", "Logs", Initial::Level(0)).short('v').help("How much is logged: higher is more."),
    Row::new(CONFIG, "Misc", Initial::String(""))
        .help("A configuration file. The environment and flags override what it says."),
    Row::new("kubeconfig", "Misc", Initial::String(""))
        .path("Generic.ClientConnection.kubeconfig")
        .help("The kubeconfig file with the API server's address and credentials; in a cluster it may be left out."),
];
