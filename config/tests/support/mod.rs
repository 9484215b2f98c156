//! A table like the one in a real host, and sources for it.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of this")]

use std::path::PathBuf;

use kcm_config::{
    ConfigError, ConfigErrors, Effective, Initial, Loaded, Origin, Position, Problem, Row, Sources, Table, checks,
    generic,
};

/// As the controllers crate would have it.
pub const REPLICA_SET_SYNCS: Row = Row::new("concurrent-replicaset-syncs", "Replicaset-controller", Initial::Int32(5))
    .path("ReplicaSetController.ConcurrentRSSyncs")
    .help("How many replica sets are worked on at once.")
    .check(checks::positive);

/// A row of a plugin, with a section of its own.
pub const GREETING: Row =
    Row::new("hello-greeting", "Hello", Initial::String("hello")).path("Hello.Greeting").help("What to say.");

/// A setting that is deprecated.
pub const OLD: Row = Row::new("hello-old", "Hello", Initial::Bool(false))
    .path("Hello.Old")
    .help("A deprecated setting.")
    .deprecated("say hello-greeting instead");

/// Of the types that plugins may use in a file.
pub const TYPED: &[Row] = &[
    Row::new("hello-share", "Hello", Initial::Float64(0.1)).path("Hello.Share").help("A 64-bit number."),
    Row::new("hello-most", "Hello", Initial::Int(0)).path("Hello.Most").help("A 64-bit whole number."),
    Row::new("hello-ports", "Hello", Initial::Int32s(&[1])).path("Hello.Ports").help("A list of whole numbers."),
    Row::new("hello-labels", "Hello", Initial::Map).path("Hello.Labels").help("Strings by key."),
    Row::new("hello-address", "Hello", Initial::Ip(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED)))
        .path("Hello.Address")
        .help("An address."),
    Row::new("hello-certs", "Hello", Initial::CertKeys).path("Hello.Certs").help("Certificates."),
    Row::new("hello-size", "Hello", Initial::Quantity("0")).path("Hello.Size").help("A quantity of bytes."),
    Row::new("hello-levels", "Hello", Initial::ModuleLevels).path("Hello.Levels").help("Verbosities."),
    Row::in_file(
        "Hello.Ignored",
        "Hello",
        Initial::Objects { fields: &["Group", "Resource"], items: &[&["", "events"]] },
    )
    .help("A list of structures."),
];

/// A setting whose key has moved.
pub const MOVED: Row = Row::new(
    "node-monitor-period",
    "Node-lifecycle-controller",
    Initial::Duration(kcm_config::GoDuration::from_secs(5)),
)
.path("NodeLifecycleController.NodeMonitorPeriod")
.help("Interval at which the status of all nodes is checked.");

pub const FILE: &str = "/etc/kcm.yaml";

pub fn table() -> Table {
    let own = [REPLICA_SET_SYNCS, GREETING, OLD, MOVED].into_iter().chain(TYPED.iter().copied());
    let rows = generic::rows().chain(own);
    Table::new(rows).expect("the rows do not clash")
}

pub fn load(sources: &Sources) -> Result<Effective, Vec<ConfigError>> {
    match table().load(sources) {
        Ok(Loaded::Settings(settings)) => Ok(*settings),
        Ok(Loaded::Help | Loaded::Version(_)) => panic!("neither --help nor --version was given"),
        Err(ConfigErrors(errors)) => Err(errors),
    }
}

pub fn load_arguments(arguments: &[&str]) -> Result<Effective, Vec<ConfigError>> {
    load(&Sources::default().arguments(arguments))
}

/// A file with the headers on its first two lines, so that `body` begins on line three.
pub fn load_file(body: &str) -> Result<Effective, Vec<ConfigError>> {
    load_whole_file(&format!("{HEADERS}{body}"))
}

pub const HEADERS: &str =
    "apiVersion: kubecontrollermanager.config.k8s.io/v1alpha1\nkind: KubeControllerManagerConfiguration\n";

pub fn load_whole_file(text: &str) -> Result<Effective, Vec<ConfigError>> {
    load(&Sources::default().arguments(["--config", FILE]).file(FILE, text))
}

pub fn argument(typed: &str, problem: Problem) -> ConfigError {
    ConfigError { origin: Origin::Argument(typed.to_owned()), problem }
}

pub fn at(line: usize, column: usize) -> Origin {
    Origin::File { path: PathBuf::from(FILE), at: Some(Position { line, column }) }
}

pub fn in_file(line: usize, column: usize, problem: Problem) -> ConfigError {
    ConfigError { origin: at(line, column), problem }
}

pub fn wrong_type(setting: &str, given: &str, expected: &str) -> Problem {
    Problem::WrongType { setting: setting.to_owned(), given: given.to_owned(), expected: expected.to_owned() }
}
