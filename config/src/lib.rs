//! Settings as rows of data: flags, environment variables, configuration file, help and documentation.
//!
//! A setting is one [`Row`]: its flag, section, type, default, key in the configuration file, help and validation. The
//! command line, the environment, the file, the help and the documentation all follow from a [`Table`] of rows, so that
//! a plugin's setting has all of them.
//!
//! ```text
//! rows ──▶ Table ──▶ help()                    help
//!            │  ├──▶ markdown()                documentation
//!            │  └──▶ load(Sources) ──▶ Effective ──▶ get, section, origin, render
//!            │
//!            defaults < file < environment < flags      (figment merges)
//! ```
//!
//! # Guarantees
//!
//! - Nothing that was given is ignored in silence: what is unknown, doubled or of the wrong type is rejected with its
//!   position, the given value, what is expected and the nearest known name. All mistakes are reported at once, as
//!   data.
//! - Every effective value knows its origin: the default, a line and column, a variable, an argument.
//! - Flags are read as upstream reads them, down to the spelling of booleans and durations.
//! - The file takes the keys that upstream's `/configz` prints, in that spelling or in lower camel case.
//!
//! # Example
//!
//! A crate of its own adds a setting and reads it back:
//!
//! ```
//! use kcm_config::{Initial, Origin, Loaded, Row, Sources, Table, generic};
//! use serde::Deserialize;
//!
//! const GREETING: Row = Row::new("hello-greeting", "Hello", Initial::String("hello"))
//!     .path("Hello.Greeting")
//!     .help("The message that the greeter writes.");
//!
//! #[derive(Deserialize)]
//! #[serde(rename_all = "PascalCase")]
//! struct Hello {
//!     greeting: String,
//! }
//!
//! let table = Table::new(generic::rows().chain([GREETING]))?;
//! let sources = Sources::default().arguments(["--kube-api-qps=50"]).variables([("KCM_HELLO_GREETING", "hi")]);
//! let Loaded::Settings(settings) = table.load(&sources)? else { panic!("--help was not given") };
//!
//! assert_eq!(settings.get::<f32>("kube-api-qps")?, 50.0);
//! assert_eq!(settings.section::<Hello>("Hello")?.greeting, "hi");
//! assert_eq!(settings.origin("kube-api-burst"), Some(&Origin::Default));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is not here
//!
//! Validation that needs more than the value itself (controller names against the registry, the durations of leader
//! election against each other) is in the host.

pub mod checks;
mod did_you_mean;
mod duration;
mod effective;
mod env;
mod error;
mod example;
mod file;
mod flags;
mod gate;
pub mod gates;
pub mod generic;
mod help;
mod keys;
mod load;
mod merge;
mod moved;
mod read_file;
mod removed;
mod render;
mod row;
mod setting;
mod string_map;
mod table;
mod table_error;
mod value;
mod yaml;
mod yaml_value;

/// The Kubernetes version whose flags, gates and defaults are implemented.
pub const KUBERNETES_VERSION: &str = "1.37.2";

pub use did_you_mean::nearest;
pub use duration::{GoDuration, NotADuration};
pub use effective::{AccessError, Effective};
pub use error::{ConfigError, ConfigErrors, Origin, Position, Problem, Warning};
pub use file::{API_VERSION, FileKind, KIND};
pub use flags::VersionRequest;
pub use gate::{Gate, GateStage};
pub use gates::{GateState, Gates, Versions};
pub use help::wrap;
pub use load::{Loaded, Sources};
pub use row::{Check, Help, Initial, KeyPath, Row, VARIABLE_PREFIX};
pub use setting::{Section, Setting, Workers};
pub use string_map::{NoStringMap, string_map};
pub use table::Table;
pub use table_error::{TableError, TableErrors};
pub use value::{CertKey, FromValue, Kind, ModuleLevel, Value, WrittenQuantity};
pub use yaml_value::{NotYaml, yaml_value};
