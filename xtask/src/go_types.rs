//! Properties of API fields that OpenAPI lacks: how an empty field is encoded, the name of its Go type in decoding errors,
//! and its protobuf number. They are read from the Go types, whose modules lie beside the module of Kubernetes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Properties of fields, by the OpenAPI name of their type and their own name.
pub(crate) type Marks = BTreeMap<(String, String), Mark>;

/// Properties of one field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Mark {
    /// Its encoding if it is empty.
    pub(crate) empty: &'static str,
    /// Its type, as Go prints it; without a leading pointer.
    pub(crate) go: String,
    /// Its number in protobuf, after the numbers of the embedded structs; empty if it is not in protobuf.
    pub(crate) number: String,
}

/// Modules by the beginning of the OpenAPI names of their types.
const MODULES: [(&str, &str); 4] = [
    ("io.k8s.api.", "api"),
    ("io.k8s.apimachinery.", "apimachinery"),
    ("io.k8s.apiextensions-apiserver.", "apiextensions-apiserver"),
    ("io.k8s.kube-aggregator.", "kube-aggregator"),
];

/// Reads the Go types of the packages of `types`, which are names as OpenAPI has them.
///
/// # Errors
///
/// If a package cannot be read: a build of the control plane downloads all of them.
pub(crate) fn marks<'a>(kubernetes: &Path, types: impl Iterator<Item = &'a str>) -> Result<Marks> {
    let mut packages = BTreeMap::new();
    for name in types {
        let (package, _) = name.rsplit_once('.').with_context(|| format!("{name} is in no package"))?;
        packages.insert(package.to_owned(), folder(kubernetes, package)?);
    }
    let mut marks = Marks::new();
    let mut embedded = Vec::new();
    for (package, folder) in &packages {
        let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            // The tests and the generated files hold no types of the API.
            if name.contains("types")
                && path.extension().is_some_and(|extension| extension == "go")
                && !name.ends_with("_test.go")
            {
                let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
                read(package, &text, &mut marks, &mut embedded);
            }
        }
    }
    // An embedded struct may embed another one, which is read later.
    for Embedded { outer, inner, number } in embedded.iter().chain(&embedded) {
        let taken: Vec<_> = marks
            .iter()
            .filter(|((name, _), _)| name == inner)
            .map(|((_, field), mark)| {
                let is_written = !number.is_empty() && !mark.number.is_empty();
                let number = if is_written { format!("{number}.{}", mark.number) } else { String::new() };
                ((outer.clone(), field.clone()), Mark { number, ..mark.clone() })
            })
            .collect();
        marks.extend(taken);
    }
    Ok(marks)
}

fn folder(kubernetes: &Path, package: &str) -> Result<PathBuf> {
    let modules = kubernetes.parent().context("Kubernetes must be in a folder of modules")?;
    let version = kubernetes.file_name().and_then(|name| name.to_str()).and_then(|name| name.split_once("@v1."));
    let (_, version) = version.context("the folder of Kubernetes must end with its version")?;
    for (prefix, module) in MODULES {
        if let Some(rest) = package.strip_prefix(prefix) {
            return Ok(modules.join(format!("{module}@v0.{version}")).join(rest.replace('.', "/")));
        }
    }
    bail!("the module of {package} is not known")
}

/// A struct in another struct, which includes its fields.
struct Embedded {
    outer: String,
    inner: String,
    /// In protobuf it is a message of its own.
    number: String,
}

/// The number of a field in protobuf, empty if it has none.
fn number(line: &str) -> String {
    let tag = line.split_once("protobuf:\"").and_then(|(_, tag)| tag.split(',').nth(1));
    tag.unwrap_or_default().to_owned()
}

/// Reads the structs of a file; fields of embedded structs belong to the struct around them.
fn read(package: &str, text: &str, marks: &mut Marks, embedded: &mut Vec<Embedded>) {
    let mut current: Option<String> = None;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("type ").and_then(|rest| rest.strip_suffix(" struct {")) {
            current = Some(format!("{package}.{name}"));
        } else if line == "}" {
            current = None;
        } else if let Some(name) = &current
            && let Some((field, empty, go_type)) = field(line)
        {
            let (go, number) = (printed_type(package, go_type), number(line));
            let mark = Mark { empty, go, number };
            marks.insert((name.clone(), field.to_owned()), mark);
        } else if let Some(name) = &current
            && let [inner, tag, ..] = line.split_whitespace().collect::<Vec<_>>()[..]
            && ["`json:\",inline\"", "`json:\"\""].iter().any(|inline| tag.starts_with(inline))
        {
            let inner = format!("{package}.{inner}");
            embedded.push(Embedded { outer: name.clone(), inner, number: number(line) });
        }
    }
}

/// The name of a field as JSON has it, how it is written when it is empty, and its type.
fn field(line: &str) -> Option<(&str, &'static str, &str)> {
    let line = line.trim_start();
    if line.starts_with("//") {
        return None;
    }
    let mut words = line.split_whitespace();
    let first = words.next()?;
    // A field without a name is called as its type.
    let go_type = words.next().filter(|word| !word.starts_with('`')).unwrap_or(first);
    let tag = line.split_once('`')?.1.split_once("json:\"")?.1.split_once('"')?.0;
    let mut words = tag.split(',');
    let name = words.next().filter(|name| !name.is_empty())?;
    let (mut omit_empty, mut omit_zero) = (false, false);
    for word in words {
        omit_empty |= word == "omitempty";
        omit_zero |= word == "omitzero";
    }
    let plain = go_type.rsplit('.').next().unwrap_or(go_type);
    let is_collection = go_type.starts_with("map[") || go_type.starts_with("[]");
    let mark = if omit_zero {
        " omit"
    } else if go_type.starts_with('*') {
        if omit_empty { " pointer" } else { " null" }
    } else if is_collection {
        if omit_empty { " omit" } else { " null" }
    } else if matches!(plain, "Time" | "MicroTime") || (!omit_empty && plain == "RawExtension") {
        " null"
    } else if matches!(plain, "Quantity" | "IntOrString") {
        " zero"
    } else if omit_empty {
        " omit"
    } else {
        ""
    };
    Some((name, mark, go_type))
}

/// A type as Go prints it: by the name of its package, not by what a file calls that package.
fn printed_type(package: &str, go_type: &str) -> String {
    let go_type = go_type.trim_start_matches('*');
    if let Some(item) = go_type.strip_prefix("[]") {
        return format!("[]{}", printed_type(package, item));
    }
    if let Some((key, value)) = go_type.strip_prefix("map[").and_then(|rest| rest.split_once(']')) {
        return format!("map[{}]{}", printed_type(package, key), printed_type(package, value));
    }
    match go_type.split_once('.') {
        // `metav1` and `corev1` are packages that call themselves `v1`.
        Some((alias, name)) => format!("{}.{name}", alias.find("v1").map_or(alias, |at| &alias[at..])),
        None if go_type == "byte" => "uint8".to_owned(),
        None if go_type.starts_with(|c: char| c.is_ascii_lowercase()) => go_type.to_owned(),
        None => format!("{}.{go_type}", package.rsplit('.').next().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_marked_by_how_go_writes_them_when_empty() {
        for (line, expected) in [
            ("\tReplicas *int32 `json:\"replicas,omitempty\" protobuf:\"varint,1\"`", Some(("replicas", " pointer"))),
            ("\tPaused bool `json:\"paused,omitempty\"`", Some(("paused", " omit"))),
            ("\tReplicas int32 `json:\"replicas\"`", Some(("replicas", ""))),
            ("\tRules []PolicyRule `json:\"rules\"`", Some(("rules", " null"))),
            ("\tLast metav1.Time `json:\"last,omitempty\"`", Some(("last", " null"))),
            ("\tDivisor resource.Quantity `json:\"divisor,omitempty\"`", Some(("divisor", " zero"))),
            ("\tmetav1.TypeMeta `json:\",inline\"`", None),
            ("\t// Old string `json:\"old\"`", None),
        ] {
            assert_eq!(field(line).map(|(name, mark, _)| (name, mark)), expected, "{line}");
        }
    }

    #[test]
    fn types_are_printed_by_the_names_of_their_packages() {
        for (go_type, expected) in [
            ("*int32", "int32"),
            ("[]byte", "[]uint8"),
            ("RestartPolicy", "v1.RestartPolicy"),
            ("[]metav1.Condition", "[]v1.Condition"),
            ("map[string]string", "map[string]string"),
            ("types.UID", "types.UID"),
        ] {
            assert_eq!(printed_type("io.k8s.api.core.v1", go_type), expected, "{go_type}");
        }
    }
}
