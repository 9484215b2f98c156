//! All objects in a normal form, of which two recordings can be compared field by field.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use serde_json::Value;

use super::line::HOLD;
use super::read::{Script, is_like};
use super::resources::path;
use crate::clock;

/// What differs in every run.
const NOT_COMPARED: [&str; 5] = ["managedFields", "resourceVersion", "creationTimestamp", "selfLink", "uid"];

/// Times that are younger were written during the run.
const RUN: Duration = Duration::from_hours(12);

/// What upstream and ours put before the message of events that are combined, which have no reporter.
const COMBINED: &str = "(combined from similar events): ";

/// The finalizer of a pod that its job has not counted.
const UNCOUNTED: &str = "batch.kubernetes.io/job-tracking";

/// Kinds whose controllers write the generation that they have seen.
const OBSERVING: [&str; 5] = ["DaemonSet", "Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"];

/// How text begins that stands for the uid of an object.
pub(super) const UID: &str = "uid(";

/// What there is, in lines without names, times and versions that differ from run to run.
pub(super) type Record = BTreeSet<String>;

/// All objects that a script records, and their events.
pub(super) struct Objects(Vec<Value>);

impl Objects {
    /// Lists what a script records: the objects of its namespaces, and those that are in none.
    pub(super) async fn read(client: &Client, script: &Script) -> Result<Self> {
        let is_within = |item: &Value| {
            let metadata = &item["metadata"];
            // Roles and other objects of Kubernetes itself.
            let is_system = item["kind"] == "ClusterRole" && text(&metadata["name"]).contains(':');
            let namespace = metadata["namespace"].as_str();
            !is_system && namespace.is_none_or(|namespace| script.namespaces.iter().any(|it| it == namespace))
        };
        let lists = script.records.iter().filter_map(|resource| path(resource)).map(|path| async move {
            let path = path.as_str();
            let request = http::Request::get(path).body(Vec::new())?;
            let list: Value = client.request(request).await.with_context(|| format!("cannot list {path}"))?;
            // The items of a list have no kind.
            let kind = text(&list["kind"]).trim_end_matches("List").to_owned();
            let items = list["items"].as_array().cloned().unwrap_or_default();
            Ok::<_, anyhow::Error>(items.into_iter().map(move |mut item| {
                item["kind"] = Value::from(kind.clone());
                item
            }))
        });
        let all = futures::future::try_join_all(lists).await?.into_iter().flatten();
        Ok(Self(all.filter(is_within).collect()))
    }

    /// The versions of all objects but events, by kind, namespace and name.
    pub(super) fn versions(&self) -> BTreeMap<String, String> {
        let objects = self.0.iter().filter(|it| it["kind"] != "Event");
        let line = |it: &Value| {
            let metadata = &it["metadata"];
            let [namespace, name, version] =
                ["namespace", "name", "resourceVersion"].map(|field| text(&metadata[field]).to_owned());
            (format!("{} {namespace}/{name}", text(&it["kind"])), version)
        };
        objects.map(line).collect()
    }

    /// The name of an active pod of a controller, or of an unfinished job of a cron job. `key` is its index, its node, the
    /// tag of its image if it is of a deployment, a state, or empty. One that is not ready comes first.
    /// It is none of `used`.
    pub(super) fn dependent(
        &self,
        namespace: &str,
        controller: &str,
        key: &str,
        used: &BTreeSet<String>,
    ) -> Option<&str> {
        let is_meant = |it: &&Value| {
            let metadata = &it["metadata"];
            let owner = &metadata["ownerReferences"][0];
            let of_deployment = text(&owner["name"]).rsplit_once('-').filter(|_| owner["kind"] == "ReplicaSet");
            let is_of_deployment = of_deployment.is_some_and(|(deployment, _)| deployment == controller);
            let is_dependent = metadata["namespace"] == namespace
                && (owner["name"] == controller || is_of_deployment)
                && ["Pod", "Job"].iter().any(|kind| it["kind"] == *kind);
            let tag = text(&it["spec"]["containers"][0]["image"]).rsplit_once(':').map(|(_, tag)| tag);
            let has_tag = is_of_deployment && tag == Some(key);
            let is_held = metadata["finalizers"].as_array().is_some_and(|all| all.iter().any(|it| it == HOLD));
            let is_active = metadata["deletionTimestamp"].is_null()
                && !["Succeeded", "Failed"].iter().any(|phase| it["status"]["phase"] == *phase)
                && !["Complete", "Failed"].iter().any(|ended| is_true(it, ended));
            is_dependent
                && !used.contains(text(&metadata["name"]))
                && match key {
                    "held" => is_held,
                    "ready" => is_active && is_true(it, "Ready"),
                    "waiting" => is_active && !is_held && !is_true(it, "Ready"),
                    _ => is_active && (key.is_empty() || key == index(it) || key == node(it) || has_tag),
                }
        };
        let found = self.0.iter().filter(is_meant);
        found.min_by_key(|it| (is_true(it, "Ready"), text(&it["metadata"]["name"])))?["metadata"]["name"].as_str()
    }

    /// A text in which `uid(KIND/NAME)` is replaced by the uid of that object.
    pub(super) fn with_uids(&self, text_: &str) -> String {
        self.0.iter().filter(|it| it["kind"] != "Event").fold(text_.to_owned(), |text_, it| {
            let metadata = &it["metadata"];
            let named = format!("uid({}/{})", text(&it["kind"]).to_lowercase(), text(&metadata["name"]));
            text_.replace(&named, text(&metadata["uid"]))
        })
    }

    /// Whether a controller has work that it knows of: a change of the spec that it has not seen, a finished pod that its
    /// job has not counted, or a service CIDR that nothing keeps.
    pub(super) fn are_behind(&self, script: &Script) -> bool {
        self.0.iter().any(|it| {
            let (metadata, status) = (&it["metadata"], &it["status"]);
            let seen = &status["observedGeneration"];
            let is_set = OBSERVING.iter().any(|kind| it["kind"] == *kind && script.runs(kind));
            let has_ended = ["Succeeded", "Failed"].iter().any(|phase| status["phase"] == *phase);
            let finalizers = metadata["finalizers"].as_array().into_iter().flatten();
            // It only waits until every API server has learned of its deletion.
            let is_released = it["kind"] == "ServiceCIDR"
                && metadata["deletionTimestamp"].is_string()
                && !status["conditions"]
                    .as_array()
                    .is_some_and(|all| all.iter().any(|it| it["reason"] == "Terminating"));
            is_released
                || is_set && *seen != metadata["generation"]
                || has_ended && finalizers.into_iter().any(|finalizer| finalizer == UNCOUNTED)
        })
    }
}

/// The names of a run, for which a normal form has others.
#[derive(Default)]
pub(super) struct Names {
    /// The objects by uid.
    uids: BTreeMap<String, String>,
    /// How many objects there were under a name.
    counts: BTreeMap<String, usize>,
    /// The certificate of the cluster's authority, as text and as secrets have it.
    authority: [String; 2],
    /// The hashes of daemon sets' revisions and of replica sets, of which the pages of the controllers say why they
    /// differ, in order, with the names of the daemon sets and deployments.
    hashes: Vec<(String, String)>,
}

impl Names {
    /// The names of a cluster with this authority.
    pub(super) fn of(authority: &str) -> Self {
        Self { authority: [authority.to_owned(), STANDARD.encode(authority)], ..Self::default() }
    }

    /// The fields of all objects, one a line, and their events.
    pub(super) fn record(&mut self, objects: &Objects, script: &Script) -> Record {
        let mut in_order: Vec<&Value> = objects.0.iter().collect();
        in_order.sort_by_key(|it| (text(&it["metadata"]["creationTimestamp"]), revision(it)));
        // The names of pods have the hashes of their replica sets.
        for object in &in_order {
            self.see_hash(object);
        }
        for object in in_order {
            self.see(object);
        }
        let now = clock::now();
        let mut lines: BTreeMap<String, i64> = BTreeMap::new();
        for object in &objects.0 {
            if object["kind"] == "Event" {
                let component = text(&object["source"]["component"]);
                if is_of_controller(component) && !is_ignored(object, script) {
                    let times = lines.entry(self.event(object)).or_default();
                    *times = if is_once(object, script) { 1 } else { *times + reported(object) };
                }
            } else {
                let (name, kind) = (self.label(object), text(&object["kind"]));
                Fields { names: self, script, now, lines: &mut lines }.add(object, &name, kind);
            }
        }
        lines.into_iter().map(|(line, count)| format!("{line} (x{count})")).collect()
    }

    fn see_hash(&mut self, object: &Value) {
        let metadata = &object["metadata"];
        let owner = &metadata["ownerReferences"][0];
        let label = match [text(&object["kind"]), text(&owner["kind"])] {
            ["ControllerRevision", "DaemonSet"] => "controller-revision-hash",
            ["ReplicaSet", "Deployment"] => "pod-template-hash",
            _ => "",
        };
        let hash = text(&metadata["labels"][label]).to_owned();
        let hash = (text(&owner["name"]).to_owned(), hash);
        if !hash.1.is_empty() && !self.hashes.contains(&hash) {
            self.hashes.push(hash);
        }
    }

    fn see(&mut self, object: &Value) {
        let metadata = &object["metadata"];
        let uid = text(&metadata["uid"]).to_owned();
        if object["kind"] != "Event" && !self.uids.contains_key(&uid) {
            let name = self.words(text(&metadata["name"]));
            let name = format!("{} {} {name}", text(&metadata["namespace"]), text(&object["kind"]));
            let count = self.counts.entry(name.clone()).or_default();
            *count += 1;
            let is_generated = metadata["generateName"].is_string();
            let name = if is_generated || *count == 1 { name } else { format!("{name}, the {count}.") };
            self.uids.insert(uid, name);
        }
    }

    /// What a line calls an object: its name, and what tells pods of one controller apart.
    fn label(&self, object: &Value) -> String {
        let (metadata, status) = (&object["metadata"], &object["status"]);
        let mut label = self.uids.get(text(&metadata["uid"])).cloned().unwrap_or_default();
        if object["kind"] == "Pod" && metadata["generateName"].is_string() {
            let going = if metadata["deletionTimestamp"].is_null() { "" } else { " terminating" };
            let ready = if is_true(object, "Ready") { " ready" } else { "" };
            let image = text(&object["spec"]["containers"][0]["image"]);
            label = format!("{label} [{} {image} {}{ready}{going}]", node(object), text(&status["phase"]));
        }
        label
    }

    fn event(&self, event: &Value) -> String {
        let about = &event["involvedObject"];
        let [kind, name] = ["kind", "name"].map(|field| text(&about[field]));
        let [type_, reason, message] = ["type", "reason", "message"].map(|field| text(&event[field]));
        let (source, mut reporter) = (text(&event["source"]["component"]), text(&event["reportingComponent"]));
        // From the tenth on a manager combines events of one reason; another one begins to count anew.
        let message = message.strip_prefix(COMBINED).map_or(message, |alone| {
            reporter = source;
            alone
        });
        let namespace = text(&event["metadata"]["namespace"]);
        self.words(&format!(
            "{namespace} event of {kind} {name}: {type_} {reason} from {source}, {reporter}: {message}"
        ))
    }

    fn string(&self, text: &str, now: Timestamp) -> String {
        if !text.is_empty() && self.authority.iter().any(|authority| authority == text) {
            return "<root CA>".to_owned();
        }
        match text.parse::<Timestamp>() {
            Ok(time) if time.duration_since(now).abs() < SignedDuration::try_from(RUN).unwrap_or_default() => {
                "<time>".to_owned()
            }
            Ok(_) | Err(_) => self.words(text),
        }
    }

    /// A string without what is random in it: uids, ends of names, and hashes.
    fn words(&self, text: &str) -> String {
        let is_of_word = |it: char| it.is_ascii_alphanumeric() || it == '-';
        let mut words = String::new();
        let mut rest = text;
        while let Some(start) = rest.find(is_of_word) {
            let (between, tail) = rest.split_at(start);
            let (word, tail) = tail.split_at(tail.find(|it| !is_of_word(it)).unwrap_or(tail.len()));
            words.push_str(between);
            words.push_str(&self.word(word));
            rest = tail;
        }
        words + rest
    }

    fn word(&self, word: &str) -> String {
        if let Some(name) = self.uids.get(word) {
            return format!("<{name}>");
        }
        if is_uid(word) {
            return "<uid>".to_owned();
        }
        let (start, end) = word.rsplit_once('-').map_or(("", word), |(start, end)| (start, end));
        if end.is_empty() && !start.is_empty() {
            return format!("{}-", self.word(start));
        }
        if let Some((of, _)) = self.hashes.iter().find(|(_, hash)| hash == end) {
            let number = self.hashes.iter().filter(|(set, _)| set == of).position(|(_, hash)| hash == end);
            return format!("{start}-<hash {}>", number.unwrap_or_default());
        }
        if !start.is_empty() && is_random(end) { format!("{}-?", self.word(start)) } else { word.to_owned() }
    }
}

/// The lines of an object, one for each field.
struct Fields<'a> {
    names: &'a Names,
    script: &'a Script,
    now: Timestamp,
    lines: &'a mut BTreeMap<String, i64>,
}

impl Fields<'_> {
    /// Adds what is in a value; `field` is its kind and the names of its fields.
    fn add(&mut self, value: &Value, path: &str, field: &str) {
        if self.script.ignored.iter().any(|ignored| ignored == field) {
            return;
        }
        if self.script.masked.iter().any(|masked| masked == field) {
            self.line(format!("{path} = <masked>"));
            return;
        }
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                for (key, value) in fields {
                    let is_owner = key == "uid" && path.contains("Reference");
                    if is_owner || !NOT_COMPARED.contains(&key.as_str()) {
                        self.add(value, &format!("{path} {key}"), &format!("{field} {key}"));
                    }
                }
            }
            Value::Array(items) if !items.is_empty() && self.script.unordered.iter().any(|it| it == field) => {
                for item in items {
                    let mut lines = BTreeMap::new();
                    Fields { lines: &mut lines, ..*self }.add(item, "", field);
                    let item: Vec<String> = lines.into_keys().collect();
                    self.line(format!("{path}[] ={}", item.join(",")));
                }
            }
            Value::Array(items) if !items.is_empty() => {
                for (at, item) in items.iter().enumerate() {
                    self.add(item, &format!("{path}[{at}]"), field);
                }
            }
            Value::String(text) => self.line(format!("{path} = {}", self.names.string(text, self.now))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) | Value::Array(_) => {
                self.line(format!("{path} = {value}"));
            }
        }
    }

    fn line(&mut self, line: String) {
        *self.lines.entry(line).or_default() += 1;
    }
}

/// Whether a component reports events of a controller.
fn is_of_controller(component: &str) -> bool {
    component.ends_with("-controller") || component == "controllermanager" || component == "horizontal-pod-autoscaler"
}

/// Whether it is left to chance how often an event is reported.
fn is_once(event: &Value, script: &Script) -> bool {
    script.once.iter().any(|reason| reason == text(&event["reason"]))
}

fn reported(event: &Value) -> i64 {
    event["count"].as_i64().unwrap_or(1)
}

/// Whether it is what the API server appends to a prefix.
fn is_random(end: &str) -> bool {
    let used: BTreeSet<char> = "bcdfghjklmnpqrstvwxz2456789".chars().collect();
    end.len() == 5 && end.chars().all(|it| used.contains(&it))
}

fn is_uid(word: &str) -> bool {
    let parts: Vec<usize> = word.split('-').map(str::len).collect();
    parts == [8, 4, 4, 4, 12] && word.chars().all(|it| it == '-' || it.is_ascii_hexdigit())
}

fn is_true(object: &Value, condition: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|it| it["type"] == condition && it["status"] == "True")
}

/// The revision of a replica set; 0 of anything else.
fn revision(object: &Value) -> u64 {
    text(&object["metadata"]["annotations"]["deployment.kubernetes.io/revision"]).parse().unwrap_or_default()
}

fn index(pod: &Value) -> &str {
    text(&pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"])
}

/// The node for which a pod of a daemon set is.
fn node(pod: &Value) -> &str {
    let terms =
        &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
    text(&terms[0]["matchFields"][0]["values"][0])
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn is_ignored(event: &Value, script: &Script) -> bool {
    let reason = format!("Event {}", text(&event["reason"]));
    let whole = format!("{reason} {}", text(&event["message"]));
    script.ignored.iter().any(|it| *it == reason || is_like(&whole, it))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::{Names, Objects};
    use crate::clock;
    use crate::script::Script;

    /// What is compared of all kinds.
    fn script() -> Script {
        let text = "{ controllers: 'job,daemonset', namespaces: [jobs], records: [], manifests: [], rounds: [], \
            unordered: [Pod spec tolerations], masked: [{ line: Pod status podIP, reason: it is of a test }], ignore: [{ line: Pod status startTime, reason: it is the time of a test }, \
                { line: Event Retried, reason: it is of a test }, { line: Event Failed * was deleted, reason: it is of a test }], \
            once: [{ line: SawCompletedJob, reason: upstream repeats it by chance }] }";
        Script::read("job", text).expect("the script is sound")
    }

    fn pod(name: &str, uid: &str, phase: &str) -> Value {
        json!({
            "kind": "Pod",
            "metadata": {
                "name": name, "namespace": "jobs", "uid": uid, "generateName": "sum-", "resourceVersion": "7",
                "ownerReferences": [{ "kind": "Job", "name": "sum", "uid": "01234567-89ab-cdef-0123-456789abcdef" }],
            },
            "status": { "phase": phase, "startTime": clock::now().to_string() },
        })
    }

    fn record(objects: &[Value]) -> Vec<String> {
        Names::default().record(&Objects(objects.to_vec()), &script()).into_iter().collect()
    }

    #[test]
    fn two_runs_read_alike() {
        let one = record(&[pod("sum-bcdfg", "1", "Pending"), pod("sum-hjkl2", "2", "Failed")]);
        let other = record(&[pod("sum-zzz99", "8", "Failed"), pod("sum-xxxxx", "9", "Pending")]);
        assert_eq!(one, other);
    }

    #[test]
    fn a_line_is_a_field_and_says_how_many_have_it() {
        let lines = record(&[pod("sum-bcdfg", "1", "Pending"), pod("sum-hjkl2", "2", "Pending")]);
        let has = |line: &str| lines.iter().any(|it| it == line);
        assert!(has("jobs Pod sum-? [  Pending] status phase = Pending (x2)"), "{lines:#?}");
        assert!(has("jobs Pod sum-? [  Pending] metadata ownerReferences[0] uid = <uid> (x2)"), "{lines:#?}");
        assert!(!lines.iter().any(|line| line.contains("startTime")), "it is ignored: {lines:#?}");
    }

    #[test]
    fn events_are_ignored_by_reason_or_by_reason_and_message() {
        let event = |reason: &str, message: &str| {
            let of = json!({ "kind": "CronJob", "name": "report" });
            let source = json!({ "component": "cronjob-controller" });
            json!({ "kind": "Event", "reason": reason, "message": message, "involvedObject": of, "source": source })
        };
        for (reason, message, is_recorded) in [
            ("Retried", "anything", false),
            ("Failed", "report was deleted", false),
            ("Failed", "report is broken", true),
            ("FailedOften", "report was deleted", true),
        ] {
            assert_eq!(!record(&[event(reason, message)]).is_empty(), is_recorded, "{reason} {message}");
        }
    }

    #[test]
    fn an_event_counts_as_often_as_it_was_reported_unless_chance_repeats_it() {
        let event = |reason: &str, count: i64| {
            let of = json!({ "kind": "CronJob", "name": "report" });
            let source = json!({ "component": "cronjob-controller" });
            json!({ "kind": "Event", "reason": reason, "involvedObject": of, "source": source, "count": count })
        };
        assert_ne!(record(&[event("SuccessfulCreate", 1)]), record(&[event("SuccessfulCreate", 2)]));
        assert_eq!(record(&[event("SawCompletedJob", 1)]), record(&[event("SawCompletedJob", 2)]));
        let twice = [event("SawCompletedJob", 1), event("SawCompletedJob", 1)];
        assert_eq!(record(&twice), record(&twice[..1]), "a new manager reports it in an event of its own");
    }

    #[test]
    fn combined_events_count_as_others() {
        let event = |message: &str, reporter: &str, count: i64| {
            json!({
                "kind": "Event", "reason": "SuccessfulCreate", "involvedObject": { "kind": "Job", "name": "sum" },
                "source": { "component": "job-controller" }, "reportingComponent": reporter, "count": count,
                "message": message,
            })
        };
        let combined = [
            event("Created pod: sum-bcdfg", "job-controller", 1),
            event("(combined from similar events): Created pod: sum-hjkl2", "", 2),
        ];
        assert_eq!(record(&combined), record(&[event("Created pod: sum-zzz99", "job-controller", 3)]));
    }

    #[test]
    fn another_value_another_count_and_a_recreated_object_are_differences() {
        let pods = [pod("sum-bcdfg", "1", "Pending"), pod("sum-hjkl2", "2", "Pending")];
        let other = [pod("sum-bcdfg", "1", "Pending"), pod("sum-hjkl2", "2", "Running")];
        assert_ne!(record(&pods), record(&other));
        assert_ne!(record(&pods), record(&pods[..1]));
        let claim = |uid: &str| json!({ "kind": "PersistentVolumeClaim", "metadata": { "name": "data", "uid": uid } });
        let mut names = Names::default();
        let first = names.record(&Objects(vec![claim("1")]), &script());
        assert_ne!(first, names.record(&Objects(vec![claim("2")]), &script()));
    }

    #[test]
    fn a_list_without_order_and_a_masked_field_are_compared_without_it() {
        let pod = |keys: [&str; 2], ip: &str| {
            let tolerations = keys.map(|key| json!({ "key": key, "operator": "Exists" }));
            json!({ "kind": "Pod", "metadata": { "name": "a" }, "spec": { "tolerations": tolerations }, "status": { "podIP": ip } })
        };
        assert_eq!(record(&[pod(["a", "b"], "10.0.0.1")]), record(&[pod(["b", "a"], "10.0.0.2")]));
        assert_ne!(record(&[pod(["a", "b"], "10.0.0.1")]), record(&[pod(["a", "c"], "10.0.0.1")]));
    }

    #[test]
    fn the_authority_of_a_cluster_is_known_as_text_and_in_secrets() {
        let names = Names::of("PEM");
        assert_eq!([names.string("PEM", clock::now()), names.string("UEVN", clock::now())], ["<root CA>", "<root CA>"]);
        assert_eq!(Names::default().string("", clock::now()), "");
    }

    #[test]
    fn times_of_the_run_are_left_out_and_others_compared() {
        let names = Names::default();
        let now = clock::now();
        assert_eq!(names.string(&now.to_string(), now), "<time>");
        assert_eq!(names.string("2020-01-01T00:00:00+14:00", now), "2020-01-01T00:00:00+14:00");
    }

    #[test]
    fn a_dependent_is_found_by_index_and_the_one_that_is_not_ready_first() {
        let mut ready = pod("sum-b", "1", "Running");
        ready["status"]["conditions"] = json!([{ "type": "Ready", "status": "True" }]);
        let mut second = pod("sum-c", "2", "Pending");
        second["metadata"]["annotations"] = json!({ "batch.kubernetes.io/job-completion-index": "3" });
        let objects = Objects(vec![ready, second, pod("sum-d", "3", "Failed")]);
        assert_eq!(objects.dependent("jobs", "sum", "", &BTreeSet::new()), Some("sum-c"));
        assert_eq!(objects.dependent("jobs", "sum", "3", &BTreeSet::new()), Some("sum-c"));
        assert_eq!(objects.dependent("jobs", "sum", "4", &BTreeSet::new()), None);
        assert_eq!(objects.dependent("other", "sum", "", &BTreeSet::new()), None);
        let used = BTreeSet::from(["sum-c".to_owned()]);
        assert_eq!(objects.dependent("jobs", "sum", "", &used), Some("sum-b"), "a round changes an object once");
    }

    #[test]
    fn a_pod_of_a_deployment_is_found_by_the_tag_of_its_image() {
        let of = |name: &str, tag: &str| {
            let mut pod = pod(name, name, "Pending");
            pod["metadata"]["ownerReferences"][0] = json!({ "kind": "ReplicaSet", "name": "web-6d4f" });
            pod["spec"]["containers"] = json!([{ "image": format!("example/main:{tag}") }]);
            pod
        };
        let objects = Objects(vec![of("web-6d4f-b", "1"), of("web-6d4f-c", "2")]);
        assert_eq!(objects.dependent("jobs", "web", "2", &BTreeSet::new()), Some("web-6d4f-c"));
        assert_eq!(objects.dependent("jobs", "web", "", &BTreeSet::new()), Some("web-6d4f-b"));
        assert_eq!(objects.dependent("jobs", "web", "3", &BTreeSet::new()), None);
    }

    #[test]
    fn replica_sets_with_other_hashes_read_alike() {
        let lines = |first: &str, second: &str| {
            let set = |hash: &str, revision: &str| {
                json!({
                    "kind": "ReplicaSet",
                    "metadata": {
                        "name": format!("web-{hash}"), "namespace": "jobs", "uid": hash,
                        "labels": { "pod-template-hash": hash },
                        "annotations": { "deployment.kubernetes.io/revision": revision },
                        "ownerReferences": [{ "kind": "Deployment", "name": "web" }],
                    },
                })
            };
            record(&[set(first, "1"), set(second, "2")])
        };
        assert_eq!(lines("5d8f6c7b9", "77aa8b6c4"), lines("99bb5c6d8", "4c5d6f7b8"));
    }

    #[test]
    fn a_uid_stands_for_an_object() {
        let objects = Objects(vec![pod("sum-b", "17", "Pending")]);
        assert_eq!(objects.with_uids(r#"["uid(pod/sum-b)"]"#), r#"["17"]"#);
    }

    #[test]
    fn an_uncounted_pod_and_an_unseen_change_are_work_that_is_left() {
        let mut pod = pod("sum-b", "1", "Succeeded");
        assert!(!Objects(vec![pod.clone()]).are_behind(&script()));
        pod["metadata"]["finalizers"] = json!(["batch.kubernetes.io/job-tracking"]);
        assert!(Objects(vec![pod]).are_behind(&script()));
        let set = |seen: u8| json!({ "kind": "DaemonSet", "metadata": { "generation": 2 }, "status": { "observedGeneration": seen } });
        assert!(Objects(vec![set(1)]).are_behind(&script()));
        assert!(!Objects(vec![set(2)]).are_behind(&script()));
    }
}
