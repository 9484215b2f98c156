//! Scripts: what a person does with objects, round by round, under upstream's manager and under ours.
//!
//! A script is a file in `e2e/scenarios/scripts`, named after a controller; it is the scenario `NAME/acts_as_recorded`. Two
//! control planes see the same changes, one under each manager. After each round they must come to rest with the same
//! objects and the same events. On a third one the managers take turns, and it must come to rest as the others do:
//! a successor writes nothing that is at rest, and ends what its predecessor began.
//!
//! # The format
//!
//! | key | meaning |
//! | --- | --- |
//! | `controllers` | what the manager runs, as `--controllers` takes it |
//! | `args`, `api_server_args` | further flags of the manager, and of the API server; `<pki>` is the folder of `ca.crt` and `ca.key` |
//! | `namespaces` | the namespaces of the script; kubectl works in the first |
//! | `records` | the resources that are compared, by their plural; `events` are recorded of controllers only |
//! | `ignore` | fields that are not compared, as `KIND FIELD FIELD…`, or events, as `Event REASON` or `Event REASON MESSAGE`, `*` being any text, each with a `reason` |
//! | `masked` | fields of which only the presence is compared, each with a `reason` |
//! | `unordered` | lists whose order is not compared, as `KIND FIELD FIELD…` |
//! | `once` | reasons of events that count once however often they are reported, each with a `reason` |
//! | `differs` | lines that may differ, `*` being any text, each with a `reason` |
//! | `restless` | objects that a new manager may write at rest, as `KIND NAMESPACE/NAME`, each with a `reason` |
//! | `templates`, `manifests` | objects; `<use>: NAME` lays the rest over a template as a merge patch |
//! | `prepare` | lines before the first manager starts |
//! | `rounds` | lists of lines: commands of kubectl, or the verbs below |
//! | `metrics` | the metrics APIs are served, for the verbs `serve` and `fail` |
//! | `restarts` | a manager is started anew in each round, after its changes |
//! | `takeover` | the rounds before which managers change, counted from 1: `at_rest` before its changes, `amid` after them |
//!
//! A manifest is named `NAME.yaml`, or `KIND-NAME.yaml` if several have that name. In a round no object is changed twice: what a controller does between two changes is not determined. `CONTROLLER[KEY]` stands for a pod or job of a controller, where `KEY` is a completion index, a node,
//! `waiting`, `ready`, `held` (by a finalizer), the tag of the image of a deployment's pod, or empty; of several, an object
//! that is not ready comes first. In a patch or a manifest `uid(KIND/NAME)` stands for the uid of an object that is recorded.
//!
//! | verb | meaning |
//! | --- | --- |
//! | `ready POD [IP,IP]`, `unready POD [IP,IP]` | the pod runs since an hour, and has been ready or not since then |
//! | `exit CODE POD` | its container has ended an hour ago, and so has the pod |
//! | `finish JOB CONDITION` | a job of another controller is `Complete` or `Failed`, since an hour |
//! | `due CRONJOB` | its last start was 400 days ago |
//! | `bind POD NODE` | the pod is scheduled to the node |
//! | `hold KIND NAME`, `release KIND NAME` | a finalizer is set, and removed |
//! | `own KIND NAME KIND OWNER` | the owner controls the object |
//! | `reserve VOLUME CLAIM` | the volume is bound to the claim |
//! | `evict POD`, `keep POD` | the pod is evicted, or its budget refuses that |
//! | `serve METRIC VALUE`, `fail METRIC` | with `metrics: true`: a metric has a value, or is withdrawn; see `metrics.rs` |

mod compare;
mod line;
mod metrics;
mod play;
mod read;
mod record;
mod resources;

pub use self::play::play;
pub use self::read::Script;

/// A script that is linked: its name and its file, which is read when it is played.
pub struct ScriptFile {
    /// The canonical name of its controller, without `-controller`.
    pub name: &'static str,
    /// The path of the file.
    pub path: &'static str,
}

impl ScriptFile {
    /// Reads the script.
    ///
    /// # Errors
    ///
    /// All its mistakes, one a line, each with its position.
    pub fn read(&self) -> Result<Script, String> {
        let text = std::fs::read_to_string(self.path).map_err(|error| format!("cannot read {}: {error}", self.path))?;
        Script::read(self.name, &text)
    }
}

inventory::collect!(ScriptFile);

/// All scripts that are linked, by name.
pub fn all() -> Vec<&'static ScriptFile> {
    let mut all: Vec<_> = inventory::iter::<ScriptFile>.into_iter().collect();
    all.sort_by_key(|it| it.name);
    all
}

/// Registers a script as the scenario `NAME/acts_as_recorded`.
#[macro_export]
macro_rules! script {
    ($name:literal, $file:literal) => {
        $crate::inventory::submit! { $crate::script::ScriptFile { name: $name, path: $file } }
        $crate::inventory::submit! {
            $crate::scenario::Scenario {
                name: concat!($name, "/acts_as_recorded"),
                setup: $crate::scenario::Setup::of("").ours().on_own_planes(),
                source: $file,
                run: |_| Box::pin(async { $crate::script::play(&$crate::script::ScriptFile { name: $name, path: $file }).await }),
            }
        }
    };
}
