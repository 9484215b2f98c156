//! The row of a setting.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use crate::duration::GoDuration;
use crate::value::{Kind, Value};

/// The prefix of every environment variable.
pub const VARIABLE_PREFIX: &str = "KCM_";

/// One setting: the data of its flag, its variable, its key in the file and its documentation.
///
/// Rows are constants in the module that they configure. A controller of another crate has its own rows.
///
/// ```
/// use kcm_config::{Initial, Row};
///
/// const GREETING: Row = Row::new("hello-greeting", "Hello", Initial::String("hello"))
///     .path("Hello.Greeting")
///     .help("The message that the greeter writes.");
///
/// assert_eq!(GREETING.variable().as_deref(), Some("KCM_HELLO_GREETING"));
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Row {
    /// The flag, without dashes: upstream's name if upstream has it. The path, if only a file can set it.
    pub name: &'static str,
    /// The one-letter form of the flag.
    pub short: Option<char>,
    /// The heading in the help, without the word "flags".
    pub section: &'static str,
    /// The default, and with it the type.
    pub initial: Initial,
    /// Key in the file; `None` if the setting is only a flag and a variable.
    pub path: Option<KeyPath>,
    /// The help. The default is appended when it is printed.
    pub help: Help,
    /// The replacement, for a deprecated setting. Its use is warned of, and the help hides it.
    pub deprecated: Option<&'static str>,
    /// The validation of values beyond their type.
    pub check: Option<Check>,
    /// Whether a new value is applied while the program runs.
    pub is_reloaded: bool,
    /// Whether nothing in the program acts on the setting yet.
    pub is_without_effect: bool,
}

/// The dotted path of a key in the configuration file; it displays as `Section.Key`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyPath {
    /// The section, if the key is not the whole path.
    section: Option<&'static str>,
    key: &'static str,
}

impl KeyPath {
    /// A path in one piece.
    pub(crate) const fn whole(path: &'static str) -> Self {
        Self { section: None, key: path }
    }

    /// The names of the sections from the outermost on, and the name of the key last.
    pub(crate) fn segments(self) -> impl Iterator<Item = &'static str> {
        self.section.into_iter().chain([self.key]).flat_map(|part| part.split('.'))
    }

    pub(crate) fn is(self, name: &str) -> bool {
        self.segments().eq(name.split('.'))
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(section) = self.section {
            write!(f, "{section}.")?;
        }
        f.write_str(self.key)
    }
}

/// The help of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Help {
    /// A text for this setting alone.
    Text(&'static str),
    /// The sentence that all numbers of workers share, for these objects (a plural noun).
    Workers(&'static str),
}

impl Help {
    pub(crate) const fn is_empty(self) -> bool {
        match self {
            Self::Text(text) | Self::Workers(text) => text.is_empty(),
        }
    }
}

impl fmt::Display for Help {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Workers(objects) => write!(
                f,
                "Number of {objects} that are reconciled at the same time. A higher number reacts faster to many changes \
                 and sends more API requests."
            ),
        }
    }
}

/// A validation. Its error is the end of the sentence "the value …", as in "must be positive".
pub type Check = fn(&Value) -> Result<(), String>;

/// The default of a setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Initial {
    /// Default of type [`Kind::Bool`].
    Bool(bool),
    /// Default of type [`Kind::Int32`].
    Int32(i32),
    /// Default of type [`Kind::Int`].
    Int(i64),
    /// Default of type [`Kind::Float32`].
    Float32(f32),
    /// Default of type [`Kind::Float64`].
    Float64(f64),
    /// Default of type [`Kind::Duration`].
    Duration(GoDuration),
    /// Default of type [`Kind::String`].
    String(&'static str),
    /// Default of type [`Kind::Strings`].
    Strings(&'static [&'static str]),
    /// Default of type [`Kind::Int32s`].
    Int32s(&'static [i32]),
    /// Default of type [`Kind::Ip`].
    Ip(IpAddr),
    /// For [`Kind::Map`]: no pairs.
    Map,
    /// For [`Kind::CertKeys`]: no certificates.
    CertKeys,
    /// For [`Kind::Quantity`]: a quantity.
    Quantity(&'static str),
    /// Default of type [`Kind::Level`].
    Level(i32),
    /// For [`Kind::ModuleLevels`]: no module differs.
    ModuleLevels,
    /// For [`Kind::FeatureGates`]: no gate differs from its own default.
    FeatureGates,
    /// Default of type [`Kind::Objects`].
    Objects {
        /// The fields of an item. A missing field is empty.
        fields: &'static [&'static str],
        /// The values of the fields, of each item.
        items: &'static [&'static [&'static str]],
    },
}

impl Initial {
    /// The type of the setting.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self {
            Self::Bool(_) => Kind::Bool,
            Self::Int32(_) => Kind::Int32,
            Self::Int(_) => Kind::Int,
            Self::Float32(_) => Kind::Float32,
            Self::Float64(_) => Kind::Float64,
            Self::Duration(_) => Kind::Duration,
            Self::String(_) => Kind::String,
            Self::Strings(_) => Kind::Strings,
            Self::Int32s(_) => Kind::Int32s,
            Self::Ip(_) => Kind::Ip,
            Self::Map => Kind::Map,
            Self::CertKeys => Kind::CertKeys,
            Self::Quantity(_) => Kind::Quantity,
            Self::Level(_) => Kind::Level,
            Self::ModuleLevels => Kind::ModuleLevels,
            Self::FeatureGates => Kind::FeatureGates,
            Self::Objects { .. } => Kind::Objects,
        }
    }

    /// The default as a value.
    ///
    /// # Panics
    ///
    /// If the default of a quantity is not a quantity.
    #[must_use]
    pub fn value(self) -> Value {
        match self {
            Self::Bool(value) => Value::Bool(value),
            Self::Int32(value) | Self::Level(value) => Value::Int32(value),
            Self::Int(value) => Value::Int(value),
            Self::Float32(value) => Value::Float32(value),
            Self::Float64(value) => Value::Float64(value),
            Self::Duration(value) => Value::Duration(value),
            Self::String(value) => Value::String(value.to_owned()),
            Self::Strings(items) => Value::Strings(items.iter().map(|&item| item.to_owned()).collect()),
            Self::Int32s(items) => Value::Int32s(items.to_vec()),
            Self::Ip(value) => Value::Ip(value),
            Self::Map => Value::Map(BTreeMap::new()),
            Self::CertKeys => Value::CertKeys(Vec::new()),
            Self::Quantity(text) => Value::Quantity(text.parse().expect("the default must be a quantity")),
            Self::ModuleLevels => Value::ModuleLevels(Vec::new()),
            Self::FeatureGates => Value::Strings(Vec::new()),
            Self::Objects { fields, items } => {
                let owned = |(field, value): (&&str, &&str)| ((*field).to_owned(), (*value).to_owned());
                let object = |values: &&[&str]| fields.iter().zip(values.iter()).map(owned).collect();
                Value::Objects(items.iter().map(object).collect())
            }
        }
    }
}

impl Row {
    /// A setting with its flag (without dashes), its help section and its default.
    #[must_use]
    pub const fn new(flag: &'static str, section: &'static str, initial: Initial) -> Self {
        Self {
            name: flag,
            short: None,
            section,
            initial,
            path: None,
            help: Help::Text(""),
            deprecated: None,
            check: None,
            is_reloaded: false,
            is_without_effect: false,
        }
    }

    /// Declares a setting that only a file can set: its path, its section in the documentation, and its default.
    #[must_use]
    pub const fn in_file(path: &'static str, section: &'static str, initial: Initial) -> Self {
        Self::new(path, section, initial).path(path)
    }

    /// Adds the key in the file, in the form of `/configz`: `Generic.ClientConnection.qps`.
    #[must_use]
    pub const fn path(mut self, path: &'static str) -> Self {
        self.path = Some(KeyPath::whole(path));
        self
    }

    /// Adds the key in the file, by its section and its name there.
    #[must_use]
    pub const fn path_in(mut self, section: &'static str, key: &'static str) -> Self {
        self.path = Some(KeyPath { section: Some(section), key });
        self
    }

    /// Sets the help of the flag.
    #[must_use]
    pub const fn help(mut self, help: &'static str) -> Self {
        self.help = Help::Text(help);
        self
    }

    /// Sets the help of a number of workers for these objects, a plural noun.
    #[must_use]
    pub const fn workers_help(mut self, objects: &'static str) -> Self {
        self.help = Help::Workers(objects);
        self
    }

    /// Adds a one-letter flag.
    #[must_use]
    pub const fn short(mut self, short: char) -> Self {
        self.short = Some(short);
        self
    }

    /// Deprecates the setting, with its replacement.
    #[must_use]
    pub const fn deprecated(mut self, advice: &'static str) -> Self {
        self.deprecated = Some(advice);
        self
    }

    /// Adds a validation of the value.
    #[must_use]
    pub const fn check(mut self, check: Check) -> Self {
        self.check = Some(check);
        self
    }

    /// Applies a new value while the program runs, such as a new number of workers.
    #[must_use]
    pub const fn reloaded(mut self) -> Self {
        self.is_reloaded = true;
        self
    }

    /// Declares that the setting has no effect yet. Help and documentation say so, and setting it logs a warning.
    #[must_use]
    pub const fn without_effect(mut self) -> Self {
        self.is_without_effect = true;
        self
    }

    /// The type of the setting.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.initial.kind()
    }

    /// Returns the flag, without dashes, or `None` if only a file can set it.
    #[must_use]
    pub fn flag(&self) -> Option<&'static str> {
        (!self.path.is_some_and(|path| path.is(self.name))).then_some(self.name)
    }

    /// Returns the name for users: the flag with its dashes, or the path.
    #[must_use]
    pub fn label(&self) -> String {
        self.flag().map_or_else(|| self.name.to_owned(), |flag| format!("--{flag}"))
    }

    /// Returns the environment variable: `KCM_KUBE_API_QPS` for `kube-api-qps`. Returns `None` if only a file can set
    /// it.
    #[must_use]
    pub fn variable(&self) -> Option<String> {
        let flag = self.flag()?;
        Some(format!("{}{}", VARIABLE_PREFIX, flag.replace('-', "_").to_ascii_uppercase()))
    }

    /// Returns the help text, followed by the default.
    #[must_use]
    pub fn described(&self) -> String {
        format!("{}{} (default {})", self.help, self.suffix(), printable(&self.initial.value()))
    }

    /// The note on a setting without effect.
    pub(crate) fn note(&self) -> Option<&'static str> {
        self.is_without_effect.then_some("No effect yet.")
    }

    /// Returns the note in parentheses after a help text or an origin. It is empty for a setting with an effect.
    pub(crate) fn suffix(&self) -> String {
        self.note().map(|note| format!(" ({note})")).unwrap_or_default()
    }
}

/// The value as one line that is never blank.
pub(crate) fn printable(value: &Value) -> String {
    let text = value.to_string();
    if text.trim().is_empty() || text.contains(char::is_control) { format!("{text:?}") } else { text }
}
