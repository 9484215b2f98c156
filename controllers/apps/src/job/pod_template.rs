//! The pods that a job creates from its template.

use kcm_framework::api::views::{Job, Pod};
use kcm_framework::api::{Document, KnownView as _, OwnerReference, Resource};
use kcm_framework::ownership::Owner;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::assess::Assessment;
use super::job_pod::{COMPLETION_INDEX, INDEX_FAILURE_COUNT, INDEX_IGNORED_FAILURE_COUNT, TRACKING_FINALIZER};
use super::plan::index_failures;

const POD: &Resource = &Pod::RESOURCE;

/// The environment variable with the completion index.
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";

/// The longest prefix of a generated name, as the API server has it.
const LONGEST_PREFIX: usize = 58;

/// The parts of the template that are copied to every pod.
pub(super) struct PodTemplate<'a> {
    job: &'a Job,
    labels: Map<String, Value>,
    annotations: Map<String, Value>,
    finalizers: Vec<Value>,
    spec: Spec<'a>,
    owner: OwnerReference,
}

/// The spec of pods.
enum Spec<'a> {
    /// As the template has it.
    Plain(Option<&'a RawValue>),
    /// With the variable, and without the host name, which each index has of its own.
    Indexed(Map<String, Value>),
}

impl<'a> PodTemplate<'a> {
    /// The template of a job.
    pub(super) fn of(job: &'a Job) -> Self {
        let metadata = |name| map_at(&job.document, &["spec", "template", "metadata", name]);
        let finalizers = job.document.raw(&["spec", "template", "metadata", "finalizers"]);
        let mut finalizers: Vec<Value> = finalizers.and_then(parse).unwrap_or_default();
        if !finalizers.iter().any(|finalizer| finalizer == TRACKING_FINALIZER) {
            finalizers.push(TRACKING_FINALIZER.into());
        }
        let spec = ["spec", "template", "spec"];
        let spec = if job.is_indexed() {
            Spec::Indexed(indexed_spec(map_at(&job.document, &spec)))
        } else {
            Spec::Plain(job.document.raw(&spec))
        };
        let (labels, annotations) = (metadata("labels"), metadata("annotations"));
        Self { job, labels, annotations, finalizers, spec, owner: Owner::of(job).reference() }
    }

    /// The prefix of the names of pods: the name of the job, and the index.
    pub(super) fn generate_name(&self, index: Option<i32>) -> String {
        let name = self.job.metadata.key.name();
        let Some(index) = index else { return format!("{name}-") };
        let suffix = format!("-{index}-");
        let longest = LONGEST_PREFIX.saturating_sub(suffix.len());
        let end = if name.len() > longest { name.floor_char_boundary(longest) } else { name.len() };
        format!("{}{suffix}", &name[..end])
    }

    /// A new pod, of an index where the job has them.
    pub(super) fn pod<'b>(
        &'b self,
        name: &'b str,
        generate_name: &'b str,
        index: Option<i32>,
        assessment: &Assessment<'_>,
    ) -> impl Serialize + use<'b> {
        let (mut labels, mut annotations) = (self.labels.clone(), self.annotations.clone());
        if let Some(index) = index {
            for map in [&mut labels, &mut annotations] {
                map.insert(COMPLETION_INDEX.to_owned(), index.to_string().into());
            }
            if let Some((counted, ignored)) = index_failures(assessment, index) {
                annotations.insert(INDEX_FAILURE_COUNT.to_owned(), counted.to_string().into());
                if ignored > 0 {
                    annotations.insert(INDEX_IGNORED_FAILURE_COUNT.to_owned(), ignored.to_string().into());
                }
            }
        }
        let key = &self.job.metadata.key;
        NewPod {
            api_version: POD.api_version(),
            kind: &POD.kind,
            metadata: NewMeta {
                name,
                generate_name,
                namespace: key.namespace().unwrap_or_default(),
                labels,
                annotations,
                finalizers: &self.finalizers,
                owner_references: [&self.owner],
            },
            spec: match (&self.spec, index) {
                (Spec::Plain(spec), _) => NewSpec::Plain(*spec),
                (Spec::Indexed(spec), index) => {
                    let hostname = index.map(|index| format!("{}-{index}", key.name()));
                    NewSpec::Indexed { spec, hostname }
                }
            },
        }
    }
}

/// Every container gets the variable, unless it has one of that name.
fn indexed_spec(mut spec: Map<String, Value>) -> Map<String, Value> {
    spec.remove("hostname");
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            let variables = container.entry("env").or_insert_with(|| json!([]));
            if variables.is_null() {
                *variables = json!([]);
            }
            let Some(variables) = variables.as_array_mut() else { continue };
            if variables.iter().all(|variable| variable["name"] != INDEX_VARIABLE) {
                let field_path = format!("metadata.labels['{COMPLETION_INDEX}']");
                variables
                    .push(json!({ "name": INDEX_VARIABLE, "valueFrom": { "fieldRef": { "fieldPath": field_path } } }));
            }
        }
    }
    spec
}

fn map_at(document: &Document, path: &[&str]) -> Map<String, Value> {
    document.raw(path).and_then(parse).unwrap_or_default()
}

/// A value as a type that it has, as the API server has validated it.
fn parse<T: serde::de::DeserializeOwned>(value: &RawValue) -> Option<T> {
    serde_json::from_str(value.get()).ok()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewPod<'a> {
    api_version: String,
    kind: &'a str,
    metadata: NewMeta<'a>,
    spec: NewSpec<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum NewSpec<'a> {
    Plain(Option<&'a RawValue>),
    Indexed {
        #[serde(flatten)]
        spec: &'a Map<String, Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        hostname: Option<String>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewMeta<'a> {
    name: &'a str,
    generate_name: &'a str,
    namespace: &'a str,
    #[serde(skip_serializing_if = "Map::is_empty")]
    labels: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    annotations: Map<String, Value>,
    finalizers: &'a [Value],
    owner_references: [&'a OwnerReference; 1],
}
