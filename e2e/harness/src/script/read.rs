//! Reading a script. All its mistakes are found here, without a cluster.

use std::collections::BTreeMap;

use kcm_sandbox_conformance::{Positioned, from_fixture, read_yaml};
use serde::Deserialize;
use serde_json::Value;

use super::line::{self, Line};
use super::resources::path;

/// What happens to the objects of a controller, and what of it is compared.
#[derive(Debug)]
pub struct Script {
    pub(super) name: String,
    pub(super) controllers: String,
    pub(super) args: Vec<String>,
    pub(super) api_server_args: Vec<String>,
    pub(super) namespaces: Vec<String>,
    pub(super) records: Vec<String>,
    pub(super) ignored: Vec<String>,
    pub(super) masked: Vec<String>,
    pub(super) unordered: Vec<String>,
    pub(super) once: Vec<String>,
    pub(super) differs: Vec<String>,
    pub(super) restless: Vec<String>,
    /// By name, such as `web.yaml` and `service-web.yaml`.
    pub(super) manifests: BTreeMap<String, Value>,
    /// Made before the first manager starts.
    pub(super) prepare: Vec<Line>,
    pub(super) rounds: Vec<Vec<Line>>,
    pub(super) restarts: bool,
    pub(super) metrics: bool,
    pub(super) takeover: Option<Takeover>,
}

/// The rounds before which managers change.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Takeover {
    /// Nothing that is compared may be written before the changes of the round.
    pub(super) at_rest: Vec<usize>,
    /// The changes are made while no manager runs.
    pub(super) amid: Vec<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    controllers: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    api_server_args: Vec<String>,
    namespaces: Vec<String>,
    records: Vec<Positioned<String>>,
    #[serde(default)]
    ignore: Vec<Reasoned>,
    #[serde(default)]
    masked: Vec<Reasoned>,
    #[serde(default)]
    unordered: Vec<String>,
    #[serde(default)]
    once: Vec<Reasoned>,
    #[serde(default)]
    differs: Vec<Reasoned>,
    #[serde(default)]
    restless: Vec<Reasoned>,
    #[serde(default)]
    templates: Value,
    manifests: Vec<Positioned<Value>>,
    #[serde(default)]
    prepare: Vec<Positioned<String>>,
    rounds: Vec<Vec<Positioned<String>>>,
    #[serde(default)]
    restarts: bool,
    #[serde(default)]
    metrics: bool,
    takeover: Option<Takeover>,
}

/// Something that is not compared, and why.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reasoned {
    line: Positioned<String>,
    reason: String,
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    ///
    /// All mistakes, one a line, each with its position.
    pub fn read(name: &str, text: &str) -> Result<Self, String> {
        let raw: Raw = read_yaml(text).map_err(|error| format!("{name}.yaml: {error}"))?;
        let mut mistakes = Vec::new();
        let mut mistake = |at: String, what: String| mistakes.push(format!("{name}.yaml:{at}: {what}"));
        let (mut manifests, mut names) = (BTreeMap::new(), BTreeMap::<String, Vec<String>>::new());
        for manifest in raw.manifests {
            let at = position(&manifest);
            match from_fixture(manifest.value, &raw.templates) {
                Ok(object) => {
                    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    let (kind, name) = (text(&object["kind"]).to_lowercase(), text(&object["metadata"]["name"]));
                    let file = format!("{kind}-{name}.yaml");
                    names.entry(format!("{name}.yaml")).or_default().push(file.clone());
                    if kind.is_empty() || name.is_empty() || manifests.insert(file, object).is_some() {
                        mistake(at, "a manifest has a kind, and a name that no other of the kind has".to_owned());
                    }
                }
                Err(error) => mistake(at, error),
            }
        }
        for (short, files) in names {
            if let [file] = &files[..]
                && let Some(object) = manifests.get(file).cloned()
            {
                manifests.insert(short, object);
            }
        }
        for resource in raw.records.iter().filter(|it| path(&it.value).is_none()) {
            mistake(position(resource), format!("the path of `{}` is not known", resource.value));
        }
        let mut read = |line: &Positioned<String>| match line::read(&line.value, &manifests) {
            Ok(read) => Some(read),
            Err(error) => {
                mistake(position(line), format!("`{}`: {error}", line.value));
                None
            }
        };
        let prepare = raw.prepare.iter().filter_map(&mut read).collect();
        let rounds: Vec<Vec<Line>> =
            raw.rounds.iter().map(|lines| lines.iter().filter_map(&mut read).collect()).collect();
        for it in raw
            .ignore
            .iter()
            .chain(&raw.masked)
            .chain(&raw.once)
            .chain(&raw.differs)
            .chain(&raw.restless)
            .filter(|it| it.reason.len() < 10)
        {
            mistake(position(&it.line), format!("`{}` needs a reason", it.line.value));
        }
        if raw.namespaces.is_empty() {
            mistake("1:1".to_owned(), "a script has a namespace".to_owned());
        }
        for round in raw.takeover.iter().flat_map(|it| it.at_rest.iter().chain(&it.amid)) {
            if !(2..=rounds.len()).contains(round) {
                mistake("1:1".to_owned(), format!("managers cannot change before round {round} of {}", rounds.len()));
            }
        }
        if !mistakes.is_empty() {
            return Err(mistakes.join("\n"));
        }
        let lines = |all: Vec<Reasoned>| all.into_iter().map(|it| it.line.value).collect();
        Ok(Self {
            name: name.to_owned(),
            controllers: raw.controllers,
            args: raw.args,
            api_server_args: raw.api_server_args,
            namespaces: raw.namespaces,
            records: raw.records.into_iter().map(|it| it.value).collect(),
            ignored: lines(raw.ignore),
            masked: lines(raw.masked),
            unordered: raw.unordered,
            once: lines(raw.once),
            differs: lines(raw.differs),
            restless: lines(raw.restless),
            manifests,
            prepare,
            rounds,
            restarts: raw.restarts,
            metrics: raw.metrics,
            takeover: raw.takeover,
        })
    }
}

impl Script {
    /// Whether the manager runs the controller of a kind.
    pub(super) fn runs(&self, kind: &str) -> bool {
        let kind = kind.to_lowercase();
        self.controllers.split(',').any(|controller| controller.trim_end_matches("-controller") == kind)
    }
}

fn position<T>(at: &Positioned<T>) -> String {
    format!("{}:{}", at.defined.line(), at.defined.column())
}

/// Returns `true` if a line is like a pattern, in which `*` is any text.
pub(super) fn is_like(line: &str, pattern: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return line == pattern };
    let Some(line) = line.strip_prefix(start) else { return false };
    line.char_indices().map(|(at, _)| at).chain([line.len()]).any(|at| is_like(&line[at..], rest))
}

#[cfg(test)]
mod tests {
    use super::Script;

    const SOUND: &str = "\
controllers: job
namespaces: [jobs]
records: [jobs, pods]
templates:
  job: { apiVersion: batch/v1, kind: Job, spec: { parallelism: 2, suspend: true } }
manifests:
  - { <use>: job, metadata: { name: sum }, spec: { suspend: null } }
rounds:
  - - create -f sum.yaml
  - - exit 0 sum[]
    - patch job sum -p {\"spec\":{\"suspend\":true}}
takeover: { at_rest: [2] }
";

    fn mistakes(old: &str, new: &str) -> String {
        assert!(SOUND.contains(old), "{old}");
        Script::read("job", &SOUND.replacen(old, new, 1)).expect_err("it has a mistake")
    }

    #[test]
    fn a_script_is_read_with_its_templates() {
        let script = Script::read("job", SOUND).expect("it is sound");
        assert_eq!(script.rounds.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2]);
        let spec = &script.manifests["sum.yaml"]["spec"];
        assert_eq!(*spec, serde_json::json!({ "parallelism": 2 }));
        assert_eq!(script.takeover.expect("it has a takeover").at_rest, [2]);
    }

    #[test]
    fn a_mistake_has_its_position_and_the_nearest_verb() {
        assert_eq!(
            mistakes("exit 0", "exti 0"),
            "job.yaml:10:7: `exti 0 sum[]`: there is no verb `exti`; the nearest is `exit`"
        );
        assert_eq!(
            mistakes("f sum.yaml", "f some.yaml"),
            "job.yaml:9:7: `create -f some.yaml`: there is no manifest `some.yaml`; the nearest is `sum.yaml`"
        );
        assert_eq!(mistakes("exit 0 sum[]", "exit sum[]"), "job.yaml:10:7: `exit sum[]`: it must be `exit CODE POD`");
        assert_eq!(mistakes("records: [jobs", "records: [job"), "job.yaml:3:11: the path of `job` is not known");
        assert!(mistakes(r"true}}", "true}").contains("is no JSON"));
        assert!(mistakes("at_rest: [2]", "at_rest: [3]").contains("before round 3 of 2"));
        assert!(mistakes("<use>: job", "<use>: jab").contains("there is no fixture"));
        assert!(mistakes("takeover:", "takeovers:").contains("takeovers"));
    }

    #[test]
    fn all_mistakes_are_named_at_once() {
        let text = SOUND.replace("exit 0", "exti 0").replace("[jobs, pods]", "[jobs, pots]");
        assert_eq!(Script::read("job", &text).expect_err("it has mistakes").lines().count(), 2);
    }

    #[test]
    fn what_is_not_compared_has_a_reason() {
        let text = format!("{SOUND}ignore: [{{ line: Job status startTime, reason: '' }}]\n");
        assert!(Script::read("job", &text).expect_err("it has no reason").contains("needs a reason"));
    }
}
