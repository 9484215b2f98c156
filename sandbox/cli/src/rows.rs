//! The flags of the sandbox, which also accepts the manager's flags.

use std::net::SocketAddr;
use std::path::PathBuf;

use kcm_config::{AccessError, Effective, Initial, Row, Value};

/// Maximum number of simulated nodes.
const MOST_NODES: i32 = 5000;

/// Default path of the socket.
pub(super) const SOCKET: &str = "sandbox.sock";

/// The settings of `sandbox`, in the order of the help. The manager's settings are accepted too.
pub const ROWS: &[Row] = &[
    Row::new("api-address", SECTION, Initial::String("127.0.0.1:0"))
        .help("Where the API listens, as ADDRESS:PORT; port 0 takes a free one. Anything but loopback is reachable by others, who then need the token.")
        .check(address),
    Row::new("demo", SECTION, Initial::Bool(false))
        .help("Play a deployment, a rolling update, a bad image, a rollback, a scale and an autoscaler in the terminal, then end."),
    Row::new("differences", SECTION, Initial::Bool(false))
        .help("Print where the sandbox knowingly differs from a real cluster, and end."),
    Row::new("load", SECTION, Initial::String(""))
        .help("A folder of manifests (YAML or JSON) that are created at the start."),
    Row::new("nodes", SECTION, Initial::Int32(3)).help("Number of nodes.").check(nodes),
    Row::new("pods", SECTION, Initial::String(""))
        .help("A file that says how pods behave: which start slowly, crash, finish or get stuck. See docs/sandbox-pods.md."),
    Row::new("run-controllers", SECTION, Initial::Bool(true))
        .help("Run the controllers of this binary; --controllers chooses among them."),
    Row::new("save", SECTION, Initial::String(""))
        .help("A folder where manifests of what people made are written at the end; --load takes them. Files of the same names are replaced, others stay."),
    Row::new("seed", SECTION, Initial::Int32(0))
        .help("Names, delays and choices follow from it; 0 takes one from the clock."),
    Row::new("socket", SECTION, Initial::String(SOCKET))
        .help("Where `sandbox tell` reaches this sandbox; empty for nowhere."),
    Row::new("write-kubeconfig", SECTION, Initial::String("sandbox.kubeconfig"))
        .help("The kubeconfig file that is written for kubectl, and removed at the end."),
];

const SECTION: &str = "Sandbox";

fn address(value: &Value) -> Result<(), String> {
    let is_address = matches!(value, Value::String(text) if text.parse::<SocketAddr>().is_ok());
    if is_address { Ok(()) } else { Err("must be an address and a port, as 127.0.0.1:6443 or [::1]:0".to_owned()) }
}

fn nodes(value: &Value) -> Result<(), String> {
    let fits = matches!(value, Value::Int32(0..=MOST_NODES));
    if fits { Ok(()) } else { Err(format!("must be between 0 and {MOST_NODES}")) }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) address: SocketAddr,
    pub(super) demo: bool,
    pub(super) load: Option<PathBuf>,
    pub(super) save: Option<PathBuf>,
    pub(super) nodes: usize,
    pub(super) pod_rules: Option<PathBuf>,
    pub(super) run_controllers: bool,
    pub(super) seed: Option<u64>,
    pub(super) socket: Option<PathBuf>,
    pub(super) kubeconfig: PathBuf,
}

impl Options {
    /// Reads and validates the flags.
    ///
    /// # Errors
    /// All violations together.
    pub(super) fn read(settings: &Effective) -> Result<Self, Vec<String>> {
        let options = Self::take(settings).map_err(|error| vec![error.to_string()])?;
        let mut reasons = Vec::new();
        if options.demo && !options.run_controllers {
            reasons.push("--demo shows the controllers: leave --run-controllers=false out".to_owned());
        }
        if options.kubeconfig.as_os_str().is_empty() {
            reasons.push("--write-kubeconfig is empty: name a file, or leave the flag out".to_owned());
        }
        if reasons.is_empty() { Ok(options) } else { Err(reasons) }
    }

    fn take(settings: &Effective) -> Result<Self, AccessError> {
        let path = |flag| {
            let text: String = settings.get(flag)?;
            Ok((!text.is_empty()).then(|| PathBuf::from(text)))
        };
        let address: String = settings.get("api-address")?;
        let nodes: i32 = settings.get("nodes")?;
        let seed: i32 = settings.get("seed")?;
        Ok(Self {
            address: address.parse().expect("the row's check must have passed"),
            demo: settings.get("demo")?,
            load: path("load")?,
            save: path("save")?,
            nodes: usize::try_from(nodes).expect("the row's check must have passed"),
            pod_rules: path("pods")?,
            run_controllers: settings.get("run-controllers")?,
            seed: (seed != 0).then(|| u64::from(seed.cast_unsigned())),
            socket: path("socket")?,
            kubeconfig: path("write-kubeconfig")?.unwrap_or_default(),
        })
    }
}
