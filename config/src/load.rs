//! Loading: from the command line, the environment and the file to the effective settings.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::effective::Effective;
use crate::error::{ConfigError, ConfigErrors, Origin, Problem, Warning, excerpt};
use crate::file::FileKind;
use crate::flags::VersionRequest;
use crate::gate::GateStage;
use crate::gates::{self, Gates, Versions};
use crate::merge::{Entry, Layer, Reading, merge};
use crate::read_file::{read_file, remedy};
use crate::row::Row;
use crate::table::Table;
use crate::value::{Kind, Value};
use crate::{env, file, flags, generic};

/// The sources of settings. Empty by default, for tests.
#[derive(Default)]
pub struct Sources {
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    read: Option<Box<ReadFile>>,
    takes_operands: bool,
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The environment may hold secrets.
        f.debug_struct("Sources").field("arguments", &self.arguments).finish_non_exhaustive()
    }
}

type ReadFile = dyn Fn(&Path) -> io::Result<Vec<u8>> + Send + Sync;

/// The result of loading.
#[derive(Debug)]
pub enum Loaded {
    /// The help is requested. Print [`Table::help`].
    Help,
    /// The version is requested, on a command line that has no mistakes.
    Version(VersionRequest),
    /// The effective settings of all sources.
    Settings(Box<Effective>),
}

impl Sources {
    /// The environment and the file system of this process, and these arguments (without the program's name).
    pub fn of_process(arguments: impl IntoIterator<Item = OsString>) -> Self {
        Self::default().arguments(arguments).variables(std::env::vars_os()).reader(read_file)
    }

    /// Adds arguments of the command line.
    #[must_use]
    pub fn arguments(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Accepts positional arguments, for [`Effective::operands`]; without this call each of them is an error.
    #[must_use]
    pub fn with_operands(mut self) -> Self {
        self.takes_operands = true;
        self
    }

    /// Adds variables of the environment.
    #[must_use]
    pub fn variables(
        mut self,
        variables: impl IntoIterator<Item = (impl Into<OsString>, impl Into<OsString>)>,
    ) -> Self {
        self.variables.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// Reads files with this function.
    #[must_use]
    pub fn reader(mut self, read: impl Fn(&Path) -> io::Result<Vec<u8>> + Send + Sync + 'static) -> Self {
        self.read = Some(Box::new(read));
        self
    }

    /// Adds a file in memory, for tests.
    #[must_use]
    pub fn file(self, path: impl Into<PathBuf>, bytes: impl Into<Vec<u8>>) -> Self {
        let (path, bytes) = (path.into(), bytes.into());
        self.reader(move |asked| if asked == path { Ok(bytes.clone()) } else { Err(io::ErrorKind::NotFound.into()) })
    }
}

impl Effective {
    /// Loads the same settings again, like [`Table::load`].
    ///
    /// # Errors
    ///
    /// Every mistake in every source at once.
    pub fn load_again(&self, sources: &Sources) -> Result<Loaded, ConfigErrors> {
        self.table().load(sources)
    }
}

impl Table {
    /// Reads, validates and merges the sources: defaults < file < environment < flags.
    ///
    /// `--config` or its variable names the file, if the table has that row. A value that a stronger
    /// source overrides must be valid too.
    ///
    /// # Errors
    ///
    /// Every mistake in every source at once.
    pub fn load(&self, sources: &Sources) -> Result<Loaded, ConfigErrors> {
        let line = flags::read(self, &sources.arguments, sources.takes_operands);
        if line.asks_for_help {
            return Ok(Loaded::Help);
        }
        if let Some(request) = line.asks_for_version.filter(|_| line.reading.errors.is_empty()) {
            return Ok(Loaded::Version(request));
        }
        let variables = env::read(self, &sources.variables);
        let file = match config_file(&[&line.reading.layer, &variables.layer]) {
            Some((path, origin)) => read_config(self, sources, path, origin),
            None => Reading::default(),
        };

        let (mut errors, mut warnings) = (Vec::new(), Vec::new());
        let versions = emulated([&line.reading.layer, &variables.layer, &file.layer]);
        let versions = versions.unwrap_or_else(|problems| {
            errors.extend(problems);
            Versions::default()
        });
        let layers = [file, variables, line.reading].map(|reading| {
            errors.extend(reading.errors);
            warnings.extend(reading.warnings);
            self.examine(&reading.layer, versions, &mut errors);
            reading.layer
        });
        if !errors.is_empty() {
            return Err(ConfigErrors(errors));
        }
        let merged = merge(self.rows(), layers);
        warnings.extend(self.deprecations(&merged.entries));
        let gates = self.gates_of(&merged.entries, versions);
        warnings.extend(self.warnings_of_gates(&merged.entries, &gates));
        Ok(Loaded::Settings(Box::new(Effective::new(self.clone(), merged, gates, warnings, line.operands))))
    }

    /// Reads and validates a file of another kind as strictly as the configuration file. The rows of this table are its
    /// keys. `named_by` is the origin of its path.
    ///
    /// # Errors
    ///
    /// Every mistake at once.
    pub fn load_file(&self, kind: FileKind, path: &Path, named_by: &Origin) -> Result<Effective, ConfigErrors> {
        let Reading { layer, mut errors, warnings } = reading_of(self, kind, path, read_file(path), named_by);
        self.examine(&layer, Versions::default(), &mut errors);
        if !errors.is_empty() {
            return Err(ConfigErrors(errors));
        }
        let merged = merge(self.rows(), [layer, Layer::default(), Layer::default()]);
        let gates = self.gates_of(&merged.entries, Versions::default());
        Ok(Effective::new(self.clone(), merged, gates, warnings, Vec::new()))
    }

    /// Checks the values of one layer.
    fn examine(&self, layer: &Layer, versions: Versions, errors: &mut Vec<ConfigError>) {
        for row in self.rows() {
            let Some(entry) = layer.get(row.name) else { continue };
            let problems = self.problems_of(row, versions, &entry.value).into_iter();
            errors.extend(problems.map(|problem| ConfigError { origin: entry.origin.clone(), problem }));
        }
    }

    /// Returns a warning for each deprecated setting that any source sets.
    fn deprecations(&self, entries: &Layer) -> impl Iterator<Item = Warning> {
        self.rows().iter().filter_map(|row| {
            let (advice, entry) = (row.deprecated?, entries.get(row.name)?);
            let is_given = match &entry.origin {
                Origin::Default => false,
                // A file may spell out the defaults.
                Origin::File { .. } => entry.value != row.initial.value(),
                Origin::Variable(_) | Origin::Argument(_) => true,
            };
            is_given.then(|| Warning::Deprecated { origin: entry.origin.clone(), flag: row.name, advice })
        })
    }

    fn problems_of(&self, row: &Row, versions: Versions, value: &Value) -> Vec<Problem> {
        if let (Kind::FeatureGates, Value::Strings(pairs)) = (row.kind(), value) {
            return Gates::at(versions, self.gates(), pairs).err().unwrap_or_default();
        }
        match row.check.map(|check| check(value)) {
            Some(Err(reason)) => {
                let (setting, given) = (row.label(), excerpt(&value.to_string()));
                vec![Problem::Refused { setting, given, reason }]
            }
            Some(Ok(())) | None => Vec::new(),
        }
    }

    fn gates_of(&self, entries: &Layer, versions: Versions) -> Gates {
        let pairs = match self.gates_entry(entries).map(|entry| &entry.value) {
            Some(Value::Strings(pairs)) => pairs.as_slice(),
            Some(_) | None => &[],
        };
        Gates::at(versions, self.gates(), pairs).expect("every layer was examined")
    }

    fn gates_entry<'a>(&self, entries: &'a Layer) -> Option<&'a Entry> {
        let row = self.rows().iter().find(|row| row.kind() == Kind::FeatureGates)?;
        entries.get(row.name)
    }

    /// A warning for each gate that was set and will be removed, or that has no effect here.
    fn warnings_of_gates(&self, entries: &Layer, gates: &Gates) -> Vec<Warning> {
        let Some(entry) = self.gates_entry(entries) else { return Vec::new() };
        let mut warnings = Vec::new();
        for state in gates.states(self.gates()).filter(|state| gates.explicit().any(|name| name == state.gate.name)) {
            let (origin, gate) = (|| entry.origin.clone(), || state.gate.name.to_owned());
            let stage = state.gate.stage;
            if matches!(stage, GateStage::Ga | GateStage::Deprecated) {
                warnings.push(Warning::OldGate { origin: origin(), gate: gate(), stage });
            }
            let is_read_here = self.gates().iter().any(|known| known.name == state.gate.name);
            let mut upstreams = gates::upstream().filter(|gate| gate.is_read);
            if !is_read_here && upstreams.any(|gate| gate.name == state.gate.name) {
                warnings.push(Warning::GateWithoutEffect { origin: origin(), gate: gate() });
            }
        }
        warnings
    }
}

/// Returns the version of Kubernetes to emulate, from the strongest of these layers that names a version.
fn emulated(layers: [&Layer; 3]) -> Result<Versions, Vec<ConfigError>> {
    let entries = [generic::EMULATED_VERSION, generic::MIN_COMPATIBILITY_VERSION]
        .map(|flag| layers.iter().find_map(|layer| layer.get_key_value(flag)));
    let items = entries.map(|entry| match entry.map(|(_, entry)| &entry.value) {
        Some(Value::Strings(items)) => items.as_slice(),
        Some(_) | None => &[],
    });
    Versions::read(items[0], items[1]).map_err(|reasons| {
        let problems = reasons.into_iter().zip(entries).filter_map(|(reason, entry)| {
            let (reason, (flag, entry)) = (reason?, entry?);
            let (setting, given) = (format!("--{flag}"), excerpt(&entry.value.to_string()));
            Some(ConfigError { origin: entry.origin.clone(), problem: Problem::Refused { setting, given, reason } })
        });
        problems.collect()
    })
}

/// The configuration file that the strongest of these layers names.
fn config_file<'a>(layers: &[&'a Layer]) -> Option<(&'a Path, &'a Origin)> {
    let entry = layers.iter().find_map(|layer| layer.get(generic::CONFIG))?;
    let Value::String(path) = &entry.value else { return None };
    (!path.is_empty()).then(|| (Path::new(path), &entry.origin))
}

fn read_config(table: &Table, sources: &Sources, path: &Path, named_by: &Origin) -> Reading {
    let bytes = match &sources.read {
        Some(read) => read(path),
        None => Err(io::ErrorKind::NotFound.into()),
    };
    reading_of(table, FileKind::CONFIGURATION, path, bytes, named_by)
}

fn reading_of(table: &Table, kind: FileKind, path: &Path, bytes: io::Result<Vec<u8>>, named_by: &Origin) -> Reading {
    match bytes {
        Ok(bytes) => file::read(table, kind, path, &bytes),
        Err(error) => {
            let reason = format!("{error} (named by {named_by}){}", remedy(&error));
            let origin = Origin::File { path: path.to_owned(), at: None };
            let errors = vec![ConfigError { origin, problem: Problem::Unreadable { reason } }];
            Reading { errors, ..Reading::default() }
        }
    }
}
