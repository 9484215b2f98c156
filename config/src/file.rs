//! The parser of the configuration file, which reports every error with its position.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::did_you_mean::nearest;
use crate::error::{ConfigError, Origin, Position, Problem, Warning, excerpt};
use crate::keys::{Key, Section, lower_camel};
use crate::merge::{Entry, Reading};
use crate::moved;
use crate::row::{Initial, Row};
use crate::table::Table;
use crate::value::{Kind, Value};
use crate::yaml::{self, Content, Failure, Node, Scalar};

/// The only accepted `apiVersion`.
pub const API_VERSION: &str = "kubecontrollermanager.config.k8s.io/v1alpha1";
/// The only accepted `kind`.
pub const KIND: &str = "KubeControllerManagerConfiguration";

/// The `apiVersion` and the `kind` of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileKind {
    /// The accepted values of `apiVersion`, the preferred one first.
    pub api_versions: &'static [&'static str],
    /// The only accepted value of `kind`.
    pub kind: &'static str,
}

impl FileKind {
    /// Header of the configuration file.
    pub(crate) const CONFIGURATION: Self = Self { api_versions: &[API_VERSION], kind: KIND };
}

const START: Position = Position { line: 1, column: 1 };

/// The errors that are reported of one file. A file of another kind has tens of thousands, which help no more.
const MOST_ERRORS: usize = 100;

/// Parses the settings of a file. All errors are collected, up to a hundred; only invalid YAML stops the parser.
pub(crate) fn read(table: &Table, kind: FileKind, path: &Path, bytes: &[u8]) -> Reading {
    let mut file = File { table, kind, path, reading: Reading::default(), unreported: 0 };
    match yaml::parse(bytes) {
        Ok(Some(root)) => file.document(&root),
        Ok(None) => file.headers(&BTreeMap::new(), START),
        Err(Failure { at, problem }) => file.error(at, problem),
    }
    if file.unreported > 0 {
        let origin = Origin::File { path: path.to_owned(), at: None };
        let problem = Problem::MoreErrors { count: file.unreported };
        file.reading.errors.push(ConfigError { origin, problem });
    }
    file.reading
}

struct File<'a> {
    table: &'a Table,
    kind: FileKind,
    path: &'a Path,
    reading: Reading,
    /// The number of errors beyond those in `reading`.
    unreported: usize,
}

/// The values of `apiVersion` and `kind`, by key.
type Found<'node> = BTreeMap<&'static str, &'node Node>;

impl File<'_> {
    fn document(&mut self, root: &Node) {
        let Content::Map(entries) = &root.content else {
            return self.wrong_type(root, "the file", "a map");
        };
        let (headers, entries): (Vec<_>, Vec<_>) =
            entries.iter().partition(|(key, _)| key.text == "apiVersion" || key.text == "kind");
        let mut seen = Seen::default();
        let mut found = Found::new();
        for (key, node) in headers {
            let name = if key.text == "kind" { "kind" } else { "apiVersion" };
            if self.is_first(&mut seen, name, key) {
                found.insert(name, node);
            }
        }
        self.headers(&found, root.at);
        let keys = self.table.keys();
        self.section(keys, "", &entries);
    }

    fn headers(&mut self, found: &Found<'_>, missing_at: Position) {
        for (key, accepted) in [("apiVersion", self.kind.api_versions), ("kind", &[self.kind.kind])] {
            let (at, given) = match found.get(key) {
                None => (missing_at, None),
                Some(Node { content: Content::Plain(text) | Content::Quoted(text), .. })
                    if accepted.contains(&text.as_str()) =>
                {
                    continue;
                }
                Some(node) => (node.at, Some(describe(&node.content))),
            };
            let expected = accepted.first().copied().unwrap_or_default();
            self.error(at, Problem::WrongHeader { key, given, expected });
        }
    }

    fn section(&mut self, keys: &Section, path: &str, entries: &[&(Scalar, Node)]) {
        let mut seen = Seen::default();
        for (key, node) in entries {
            let Some((name, meaning)) = keys.find(&key.text) else {
                if self.former_key(path, key, node) {
                    continue;
                }
                if self.reading.errors.len() >= MOST_ERRORS {
                    self.unreported += 1;
                    continue;
                }
                let spellings = keys.spellings();
                let nearest = nearest(&key.text, spellings.iter().map(String::as_str)).map(str::to_owned);
                let (key_text, section) = (shortened(&key.text), path.to_owned());
                self.error(key.at, Problem::UnknownKey { key: key_text, section, nearest });
                continue;
            };
            if !self.is_first(&mut seen, name, key) {
                continue;
            }
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            match meaning {
                Key::Section(inner) => self.inner_section(inner, &path, node),
                Key::Setting(row) => self.setting(self.table.row(*row), &path, key.at, node),
            }
        }
    }

    fn inner_section(&mut self, keys: &Section, path: &str, node: &Node) {
        match &node.content {
            Content::Map(entries) => self.section(keys, path, &entries.iter().collect::<Vec<_>>()),
            // A section whose keys are all commented out.
            Content::Plain(text) if yaml::is_null(text) => {}
            Content::Plain(_) | Content::Quoted(_) | Content::List(_) => self.wrong_type(node, path, "a map"),
        }
    }

    /// Reads a setting by the key that it once had. Returns `false` if this is no such key.
    fn former_key(&mut self, section: &str, key: &Scalar, node: &Node) -> bool {
        let table = self.table;
        let Some(row) = moved::present_path(section, &key.text).and_then(|path| table.with_path(path)) else {
            return false;
        };
        let former = format!("{section}.{}", key.text);
        self.setting(row, &former, key.at, node);
        let origin = self.origin(key.at);
        self.reading.warnings.push(Warning::MovedKey { origin, key: former, to: row.label() });
        true
    }

    fn setting(&mut self, row: &Row, path: &str, at: Position, node: &Node) {
        // By its former key and its present one.
        if let Some(Entry { origin: Origin::File { at: Some(first), .. }, .. }) = self.reading.layer.get(row.name) {
            let first = *first;
            return self.error(at, Problem::DuplicateKey { key: row.label(), first });
        }
        match value_of(row.initial, &node.content) {
            Some(value) => {
                let origin = self.origin(at);
                self.reading.layer.insert(row.name, Entry { value, origin });
            }
            None => self.wrong_type(node, path, expected(row.kind())),
        }
    }

    fn is_first(&mut self, seen: &mut Seen, name: &'static str, key: &Scalar) -> bool {
        match seen.get(name) {
            Some(&first) => {
                self.error(key.at, Problem::DuplicateKey { key: shortened(&key.text), first });
                false
            }
            None => seen.insert(name, key.at).is_none(),
        }
    }

    fn wrong_type(&mut self, node: &Node, setting: &str, expected: &str) {
        let (setting, expected) = (setting.to_owned(), expected.to_owned());
        self.error(node.at, Problem::WrongType { setting, given: describe(&node.content), expected });
    }

    fn error(&mut self, at: Position, problem: Problem) {
        if self.reading.errors.len() >= MOST_ERRORS {
            self.unreported += 1;
            return;
        }
        let origin = self.origin(at);
        self.reading.errors.push(ConfigError { origin, problem });
    }

    fn origin(&self, at: Position) -> Origin {
        Origin::File { path: self.path.to_owned(), at: Some(at) }
    }
}

/// The first position of each key of a map.
type Seen = BTreeMap<&'static str, Position>;

/// Reads a value as strictly as the API server: a number is not a string, and a string is not a number.
fn value_of(initial: Initial, content: &Content) -> Option<Value> {
    match initial {
        Initial::Bool(_) => match plain(content)? {
            "true" | "True" | "TRUE" => Some(Value::Bool(true)),
            "false" | "False" | "FALSE" => Some(Value::Bool(false)),
            _ => None,
        },
        Initial::Int32(_) | Initial::Level(_) => json_number(plain(content)?)?.parse().ok().map(Value::Int32),
        Initial::Int(_) => json_number(plain(content)?)?.parse().ok().map(Value::Int),
        Initial::Float32(_) | Initial::Float64(_) => initial.kind().parse(json_number(plain(content)?)?),
        Initial::String(_) => string_of(content).map(|text| Value::String(text.to_owned())),
        Initial::Duration(_) | Initial::Ip(_) => initial.kind().parse(string_of(content)?),
        Initial::Quantity(_) => {
            let number = plain(content).and_then(json_number);
            initial.kind().parse(number.or_else(|| string_of(content))?)
        }
        Initial::Strings(_) | Initial::FeatureGates => strings_of(content).map(Value::Strings),
        Initial::Int32s(_) => {
            let number = |item: &Node| json_number(plain(&item.content)?)?.parse().ok();
            items_of(content)?.iter().map(number).collect::<Option<_>>().map(Value::Int32s)
        }
        Initial::CertKeys | Initial::ModuleLevels => {
            let items = strings_of(content)?.into_iter().map(|item| initial.kind().parse(&item));
            items.reduce(|all, item| Some(all?.and(item?))).unwrap_or_else(|| Some(initial.value()))
        }
        Initial::Map => map_of(content, None).map(Value::Map),
        Initial::Objects { fields, .. } => {
            let objects = items_of(content)?.iter().map(|item| map_of(&item.content, Some(fields)));
            objects.collect::<Option<_>>().map(Value::Objects)
        }
    }
}

fn items_of(content: &Content) -> Option<&[Node]> {
    match content {
        Content::List(items) => Some(items),
        Content::Plain(_) | Content::Quoted(_) | Content::Map(_) => None,
    }
}

fn strings_of(content: &Content) -> Option<Vec<String>> {
    items_of(content)?.iter().map(|item| string_of(&item.content).map(str::to_owned)).collect()
}

/// Returns strings by key. An object has exactly the given `fields`; missing fields are empty.
fn map_of(content: &Content, fields: Option<&[&str]>) -> Option<BTreeMap<String, String>> {
    let Content::Map(entries) = content else { return None };
    let fields = fields.unwrap_or_default().iter().map(|&field| (field.to_owned(), String::new()));
    let (mut map, mut seen): (BTreeMap<_, _>, _) = (fields.collect(), BTreeSet::new());
    let is_open = map.is_empty();
    for (key, node) in entries {
        let known = map.keys().find(|known| **known == key.text || lower_camel(known) == key.text);
        let name = if is_open { key.text.clone() } else { known?.clone() };
        if !seen.insert(name.clone()) {
            return None;
        }
        map.insert(name, string_of(&node.content)?.to_owned());
    }
    Some(map)
}

fn plain(content: &Content) -> Option<&str> {
    match content {
        Content::Plain(text) => Some(text),
        Content::Quoted(_) | Content::List(_) | Content::Map(_) => None,
    }
}

fn string_of(content: &Content) -> Option<&str> {
    match content {
        Content::Quoted(text) => Some(text),
        Content::Plain(text) if yaml::is_string(text) => Some(text),
        Content::Plain(_) | Content::List(_) | Content::Map(_) => None,
    }
}

/// The scalar, if it is a number in JSON; `010`, `0x10` and `1_000`, which YAML parsers treat differently, are not.
fn json_number(text: &str) -> Option<&str> {
    serde_json::from_str::<serde_json::Number>(text).is_ok().then_some(text)
}

/// Describes the form of a value in a file if types are stricter there than in flags.
fn expected(kind: Kind) -> &'static str {
    match kind {
        Kind::String => "a string (quoted if it looks like another type)",
        Kind::Duration => "a duration string with units, such as 1m30s",
        Kind::Strings | Kind::FeatureGates => "a list of strings (quoted if they look like another type)",
        Kind::Int32s => "a list of whole numbers",
        Kind::CertKeys => "a list of strings, CERT,KEY or CERT,KEY:NAME,NAME each",
        Kind::ModuleLevels => "a list of strings, pattern=N each",
        Kind::Map => "a map of strings, each key once",
        Kind::Objects => "a list of maps of strings, with known keys, each key once",
        Kind::Bool
        | Kind::Int32
        | Kind::Int
        | Kind::Level
        | Kind::Float32
        | Kind::Float64
        | Kind::Ip
        | Kind::Quantity => kind.expected(),
    }
}

fn describe(content: &Content) -> String {
    match content {
        Content::Plain(text) if yaml::is_null(text) => "empty".to_owned(),
        Content::Plain(text) => shortened(text),
        Content::Quoted(text) => excerpt(text),
        Content::List(_) => "a list".to_owned(),
        Content::Map(_) => "a map".to_owned(),
    }
}

/// A plain scalar, cut and escaped to fit an error line.
fn shortened(text: &str) -> String {
    excerpt(text).replacen('"', "", 1).replacen('"', "", 1)
}
