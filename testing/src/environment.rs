//! [`TestEnvironment`]: the builder of a test cluster.

use std::path::PathBuf;

use jiff::Timestamp;
use kcm_framework::config::{Effective, Initial, Loaded, Row, Sources, Table, gates};
use kcm_framework::{ControllerDescriptor, Extensions, Registry, Selection};
use kcm_sandbox_apiserver::{Resource, Sandbox, SandboxOptions};
use serde_json::Value;

/// The options of a [`TestCluster`](crate::TestCluster): controllers, settings, and what the API server holds before they start.
#[must_use = "an environment does nothing until `start`"]
pub struct TestEnvironment {
    pub(crate) controllers: Vec<ControllerDescriptor>,
    pub(crate) selection: Vec<String>,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    file: Option<String>,
    rows: Vec<Row>,
    pub(crate) options: SandboxOptions,
    preparations: Vec<Preparation>,
    pub(crate) extensions: Extensions,
    pub(crate) explain_memory: Option<usize>,
    pub(crate) allowed_errors: Vec<String>,
}

/// A preparation of the API server before the manager starts.
type Preparation = Box<dyn FnOnce(&Sandbox)>;

/// The flag for the configuration file.
const CONFIG: Row = Row::new("config", "Misc", Initial::String("")).help("The configuration file.");

/// The flag for feature gates.
const FEATURE_GATES: Row = Row::new("feature-gates", "Misc", Initial::FeatureGates).help("Gates to turn on or off.");

/// Name of the configuration file of a test; it does not exist on disk.
const FILE: &str = "config.yaml";

/// Wall-clock time at the start of a test, unless [`TestEnvironment::sandbox_options`] sets another: noon in UTC of
/// 2026-01-02.
pub const START: Timestamp = Timestamp::constant(1_767_355_200, 0);

impl TestEnvironment {
    /// Creates an environment with these controllers and default settings.
    pub fn new(controllers: impl IntoIterator<Item = ControllerDescriptor>) -> Self {
        Self {
            controllers: controllers.into_iter().collect(),
            selection: vec!["*".to_owned()],
            arguments: Vec::new(),
            variables: Vec::new(),
            file: None,
            rows: Vec::new(),
            options: SandboxOptions { start: START, seed: 1, ..SandboxOptions::default() },
            preparations: Vec::new(),
            extensions: Extensions::default(),
            explain_memory: None,
            allowed_errors: Vec::new(),
        }
    }

    /// Sets `--controllers`. The default is `*`.
    pub fn select(self, items: &[&str]) -> Self {
        Self { selection: items.iter().map(ToString::to_string).collect(), ..self }
    }

    /// Adds command-line arguments for the settings of the controllers.
    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(ToString::to_string));
        self
    }

    /// Adds settings that the controllers read and that belong to the manager or to another controller.
    pub fn settings_of_others(mut self, rows: &[Row]) -> Self {
        self.rows.extend(rows);
        self
    }

    /// Sets an environment variable for the settings of the controllers.
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the content of the configuration file.
    pub fn configuration(self, text: &str) -> Self {
        Self { file: Some(text.to_owned()), ..self }
    }

    /// Creates a namespace before the manager starts.
    pub fn namespace(self, name: &'static str) -> Self {
        self.prepare(move |sandbox| drop(sandbox.create_namespace(name).expect("the namespace must be new")))
    }

    /// Creates an object before the manager starts.
    pub fn object(self, resource: Resource, object: Value) -> Self {
        self.prepare(move |sandbox| drop(sandbox.create(&resource, object).expect("the object must be accepted")))
    }

    /// Prepares the API server before the manager starts: resources, objects, faults. Preparations run in call order.
    pub fn prepare(mut self, preparation: impl FnOnce(&Sandbox) + 'static) -> Self {
        self.preparations.push(Box::new(preparation));
        self
    }

    /// Starts the API server with these options.
    pub fn sandbox_options(self, options: SandboxOptions) -> Self {
        Self { options, ..self }
    }

    /// Keeps the last decisions in so many bytes, for explanations; see `ManagerBuilder::explain_memory`.
    pub fn explain_memory(self, bytes: usize) -> Self {
        Self { explain_memory: Some(bytes), ..self }
    }

    /// Passes extension values to the controllers.
    pub fn extensions(self, extensions: Extensions) -> Self {
        Self { extensions, ..self }
    }

    /// Allows logged errors whose line contains `text`: they do not fail the test.
    pub fn allow_error(mut self, text: &str) -> Self {
        self.allowed_errors.push(text.to_owned());
        self
    }

    /// The API server, prepared.
    pub(crate) fn sandbox(&mut self) -> Sandbox {
        let sandbox = Sandbox::new(self.options);
        for prepare in std::mem::take(&mut self.preparations) {
            prepare(&sandbox);
        }
        sandbox
    }

    pub(crate) fn registry(&self) -> Registry {
        Registry::of(self.controllers.iter().copied()).unwrap_or_else(|errors| panic!("descriptors: {errors:?}"))
    }

    pub(crate) fn selection(&self, registry: &Registry) -> Selection {
        let selection = Selection::parse(self.selection.iter().map(String::as_str), registry, &[]);
        selection.unwrap_or_else(|errors| panic!("controllers: {errors:?}"))
    }

    pub(crate) fn settings(&self, registry: &Registry) -> Effective {
        let gates = gates::KNOWN.iter().copied().chain(registry.feature_gates());
        let table =
            Table::with_gates(registry.rows().chain(self.rows.iter().copied()).chain([CONFIG, FEATURE_GATES]), gates)
                .unwrap_or_else(|errors| panic!("rows: {errors}"));
        let mut sources = Sources::default().arguments(&self.arguments).variables(self.variables.iter().cloned());
        if let Some(text) = &self.file {
            sources = sources.arguments([format!("--config={FILE}")]).file(PathBuf::from(FILE), text.as_bytes());
        }
        match table.load(&sources) {
            Ok(Loaded::Settings(settings)) => *settings,
            Ok(Loaded::Help | Loaded::Version(_)) => {
                panic!("the arguments of a test must not ask for help or version")
            }
            Err(errors) => panic!("settings: {errors}"),
        }
    }
}
