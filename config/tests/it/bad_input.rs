//! No input makes the loader panic, and every refusal is one short line with the problem and its place.

use std::fs;
use std::path::Path;

use crate::support::{FILE, HEADERS, table};
use crate::targets;
use kcm_config::{ConfigError, Origin, Sources};
use proptest::prelude::*;

/// Longer than any line of an error: a given text is cut to 80 characters, each of which an escape may make ten.
const LONGEST_LINE: usize = 3000;

/// Returns the refusals; none if settings are loaded or the help is requested.
fn refusals(sources: &Sources) -> Vec<ConfigError> {
    table().load(sources).err().map(|errors| errors.0).unwrap_or_default()
}

/// Checks that each error names its source, and is one line of bounded length.
fn check(errors: &[ConfigError], is_origin: impl Fn(&Origin) -> bool) -> Result<(), TestCaseError> {
    for error in errors {
        let line = error.to_string();
        prop_assert!(is_origin(&error.origin), "{error:?}");
        prop_assert!(!line.contains(['\n', '\r']), "{line:?}");
        prop_assert!(line.len() <= LONGEST_LINE, "{} bytes: {line}", line.len());
    }
    Ok(())
}

fn is_argument(origin: &Origin) -> bool {
    matches!(origin, Origin::Argument(typed) if !typed.is_empty())
}

fn is_position(origin: &Origin) -> bool {
    matches!(origin, Origin::File { at: Some(at), .. } if at.line > 0 && at.column > 0)
}

/// Arguments that look like flags, known and unknown, with values of every kind.
fn flag_like() -> impl Strategy<Value = String> {
    let names = prop::sample::select(vec![
        "kube-api-qps",
        "kube_api_burst",
        "controllers",
        "feature-gates",
        "leader-elect",
        "min-resync-period",
        "hello-labels",
        "hello-certs",
        "hello-size",
        "hello-ports",
        "hello-address",
        "v",
        "x",
    ]);
    let values = "[-a-zA-Z0-9=,;:.\"'*\\\\ \n]{0,20}";
    (0_usize..4, names, prop::option::of(values)).prop_map(|(dashes, name, value)| {
        "-".repeat(dashes) + name + &value.map_or(String::new(), |it| format!("={it}"))
    })
}

proptest! {
    #[test]
    fn no_arguments_panic(arguments: Vec<String>) {
        check(&refusals(&Sources::default().arguments(arguments)), |_| true)?;
    }

    #[test]
    fn no_flags_panic_and_each_refusal_names_its_argument(flags in prop::collection::vec(flag_like(), 0..6)) {
        check(&refusals(&Sources::default().arguments(flags)), is_argument)?;
    }

    #[test]
    fn no_variables_panic_and_each_refusal_names_its_variable(
        name in "(KCM_KUBE_API_QPS|KCM_CONTROLLERS|KCM_HELLO_CERTS|KCM_FEATURE_GATES|KCM_[A-Z_]{0,12})",
        value: String,
    ) {
        check(&refusals(&Sources::default().variables([(name.clone(), value)])), |origin| *origin == Origin::Variable(name.clone()))?;
    }

    #[test]
    fn no_file_panics_and_each_refusal_has_its_position(
        body in "((Generic|generic|Hello|x): ?|(Controllers|labels|Certs|qps): ?|[a-z0-9*]{1,3}|[\\[\\]{}:,'\"#-]|\n {0,4}| ){0,40}",
    ) {
        let sources = Sources::default().arguments(["--config", FILE]).file(FILE, format!("{HEADERS}{body}"));
        check(&refusals(&sources), is_position)?;
    }

    #[test]
    fn no_gates_panic(text in "((kube:)?(PodDeletionCost|AllAlpha|AllBeta|[A-Za-z]{0,8})(=(true|false|[a-z]{0,4}))?,?){0,6}") {
        targets::gates(&text);
    }

    #[test]
    fn no_duration_panics(text: String, like in "[-+]?([0-9]{0,21}[.]?[0-9]{0,21}(ns|us|\u{b5}s|ms|s|m|h)?){0,3}") {
        targets::duration(&text);
        targets::duration(&like);
    }

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        targets::file(&bytes);
        targets::flags(&String::from_utf8_lossy(&bytes));
    }
}

/// A kind of input, and the rules that hold for it.
type Target = (&'static str, fn(&[u8]));

/// The inputs that fuzzing starts from, with all that it ever found something with.
#[test]
fn every_kept_input_is_taken_or_refused_as_it_must_be() {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let targets: [Target; 4] = [
        ("duration", |bytes| targets::duration(&String::from_utf8_lossy(bytes))),
        ("flags", |bytes| targets::flags(&String::from_utf8_lossy(bytes))),
        ("file", targets::file),
        ("gates", |bytes| targets::gates(&String::from_utf8_lossy(bytes))),
    ];
    for (name, target) in targets {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs").join(name);
        let inputs: Vec<_> = fs::read_dir(folder).expect("the folder is there").collect();
        assert!(!inputs.is_empty(), "{name} has inputs");
        for input in inputs {
            let path = input.expect("the folder can be read").path();
            let bytes = fs::read(&path).expect("the input can be read");
            let outcome = std::panic::catch_unwind(|| target(&bytes));
            assert!(outcome.is_ok(), "{}: {:?}", path.display(), text(&bytes));
        }
    }
}

#[test]
fn an_endless_argument_is_refused_in_a_short_line() {
    let long = "x".repeat(1 << 20);
    let arguments = [format!("--{long}"), format!("--kube-api-qps={long}"), long.clone(), format!("-{long}")];
    let errors = refusals(&Sources::default().arguments(arguments));
    assert!(errors.len() >= 3, "{}", errors.len());
    for error in &errors {
        assert!(error.to_string().len() < 300, "{} bytes", error.to_string().len());
    }
    let errors = refusals(&Sources::default().variables([("KCM_KUBE_API_QPS", long.as_str())]));
    assert!(errors[0].to_string().len() < 300);
}
