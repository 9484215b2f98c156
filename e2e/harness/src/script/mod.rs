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
//! | `args`, `api_server_args` | further flags of the manager, and of the API server |
//! | `namespaces` | the namespaces of the script; kubectl works in the first |
//! | `records` | the resources that are compared, by their plural; `events` are those of controllers |
//! | `ignore` | fields that are not compared, as `KIND FIELD FIELD…`, each with a `reason` |
//! | `masked` | fields of which only the presence is compared, each with a `reason` |
//! | `unordered` | lists whose order is not compared, as `KIND FIELD FIELD…` |
//! | `once` | reasons of events that count once however often they are reported, each with a `reason` |
//! | `differs` | lines that may differ, `*` being any text, each with a `reason` |
//! | `templates`, `manifests` | objects; `<use>: NAME` lays the rest over a template as a merge patch |
//! | `rounds` | lists of lines: commands of kubectl, or the verbs below |
//! | `restarts` | a manager is started anew in each round, after its changes |
//! | `takeover` | the rounds before which managers change, counted from 1: `at_rest` before its changes, `amid` after them |
//!
//! In a round no object is changed twice: what a controller does between two changes is not determined. `NAME.yaml` stands
//! for a manifest. `CONTROLLER[KEY]` stands for a pod or job of a controller, where `KEY` is a completion index, a node,
//! `waiting`, `ready`, `held` (by a finalizer), or empty; of several the one that is not ready comes first.
//!
//! | verb | meaning |
//! | --- | --- |
//! | `ready POD` | the pod runs, and is ready since an hour |
//! | `exit CODE POD` | its container has ended an hour ago, and so has the pod |
//! | `finish JOB CONDITION` | a job of another controller is `Complete` or `Failed`, since an hour |
//! | `due CRONJOB` | its last start was 400 days ago |
//! | `bind POD NODE` | the pod is scheduled to the node |
//! | `hold KIND NAME`, `release KIND NAME` | a finalizer is set, and removed |

mod compare;
mod line;
mod play;
mod read;
mod record;

pub use self::play::play;
pub use self::read::Script;

/// A script that is linked: its name and its text.
pub struct ScriptFile {
    /// The canonical name of its controller, without `-controller`.
    pub name: &'static str,
    /// The content of the file.
    pub text: &'static str,
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
        $crate::inventory::submit! { $crate::script::ScriptFile { name: $name, text: include_str!($file) } }
        $crate::inventory::submit! {
            $crate::scenario::Scenario {
                name: concat!($name, "/acts_as_recorded"),
                // A round is over when nothing has changed for a while: a busy machine would end it too early.
                setup: $crate::scenario::Setup::of("").ours().exclusively(),
                source: $file,
                run: |case| Box::pin(async move { $crate::script::play($name, include_str!($file), &case).await }),
            }
        }
    };
}
