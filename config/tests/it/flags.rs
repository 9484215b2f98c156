//! The command line is read as pflag reads it.

use crate::support::{argument, load, load_arguments, table, wrong_type};
use kcm_config::{GoDuration, Kind, Loaded, Origin, Problem, Sources, Value, VersionRequest, Warning};

#[test]
fn flags_take_their_values_as_pflag_gives_them() {
    let cases: &[(&[&str], &str, Value)] = &[
        (&["--kube-api-qps=50"], "kube-api-qps", Value::Float32(50.0)),
        (&["--kube-api-qps", "50.5"], "kube-api-qps", Value::Float32(50.5)),
        (&["--kube-api-qps", "-1"], "kube-api-qps", Value::Float32(-1.0)),
        (&["--kube_api_qps=50"], "kube-api-qps", Value::Float32(50.0)),
        (&["--kube_api-qps=50"], "kube-api-qps", Value::Float32(50.0)),
        (&["--kube-api-burst=0x20"], "kube-api-burst", Value::Int32(32)),
        (&["--kube-api-burst=1", "--kube-api-burst=2"], "kube-api-burst", Value::Int32(2)),
        (&["--min-resync-period=90m"], "min-resync-period", Value::Duration(GoDuration::from_secs(5400))),
        (&["--leader-elect"], "leader-elect", Value::Bool(true)),
        (&["--leader-elect=false"], "leader-elect", Value::Bool(false)),
        (&["--leader-elect=F"], "leader-elect", Value::Bool(false)),
        (&["--leader-elect=false", "--leader-elect"], "leader-elect", Value::Bool(true)),
        (&["--kubeconfig="], "kubeconfig", Value::String(String::new())),
        (&["--kubeconfig=a=b"], "kubeconfig", Value::String("a=b".to_owned())),
        (&["--kubeconfig", "--leader-elect"], "kubeconfig", Value::String("--leader-elect".to_owned())),
        (&["--v=4"], "v", Value::Int32(4)),
        (&["-v=4"], "v", Value::Int32(4)),
        (&["-v4"], "v", Value::Int32(4)),
        (&["-v", "4"], "v", Value::Int32(4)),
    ];
    for (arguments, flag, expected) in cases {
        let settings = load_arguments(arguments).unwrap_or_else(|errors| panic!("{arguments:?}: {errors:?}"));
        assert_eq!(settings.value(flag), Some(expected), "{arguments:?}");
    }
}

#[test]
fn lists_replace_the_default_and_grow_with_every_flag() {
    let cases: &[(&[&str], &[&str])] = &[
        (&[], &["*"]),
        (&["--controllers=replicaset,-job"], &["replicaset", "-job"]),
        (&["--controllers", "-job,*", "--controllers=replicaset"], &["-job", "*", "replicaset"]),
        (&["--controllers="], &[]),
        (&["--controllers=\"a,b\",c"], &["a,b", "c"]),
    ];
    for (arguments, expected) in cases {
        let settings = load_arguments(arguments).unwrap_or_else(|errors| panic!("{arguments:?}: {errors:?}"));
        assert_eq!(settings.get::<Vec<String>>("controllers").expect("it is a list"), *expected, "{arguments:?}");
    }
}

#[test]
fn lists_and_maps_of_every_type_grow_with_every_flag() {
    let cases: &[(&[&str], &str, &str)] = &[
        (&["--hello-ports=2", "--hello-ports=3,4"], "hello-ports", "2,3,4"),
        (&["--hello-labels=a=1", "--hello-labels=b=2,a=3"], "hello-labels", "a=3,b=2"),
        (&["--hello-certs=a,b", "--hello-certs", "c,d:*.x"], "hello-certs", "a,b;c,d:*.x"),
        (&["--hello-levels=a=1", "--hello-levels=b=2"], "hello-levels", "a=1,b=2"),
        (&["--hello-size=1Ki", "--hello-size=2Ki"], "hello-size", "2Ki"),
        (&["--hello-address=10.0.0.1", "--hello-address=::1"], "hello-address", "::1"),
    ];
    for (arguments, flag, expected) in cases {
        let settings = load_arguments(arguments).unwrap_or_else(|errors| panic!("{arguments:?}: {errors:?}"));
        assert_eq!(settings.value(flag).map(ToString::to_string).as_deref(), Some(*expected), "{arguments:?}");
    }
}

#[test]
fn what_only_a_file_can_set_has_no_flag_and_no_variable() {
    let problem = Problem::UnknownFlag { nearest: None };
    assert_eq!(load_arguments(&["--Hello.Ignored=x"]).err(), Some(vec![argument("--Hello.Ignored", problem)]));
    assert_eq!(table().find("Hello.Ignored").and_then(kcm_config::Row::variable), None);
    assert!(!table().help(None).contains("Ignored"));
}

#[test]
fn the_origin_of_a_flag_is_what_was_typed() {
    let settings = load_arguments(&["--kube_api_qps=50", "-v2", "--leader-elect"]).expect("the flags are good");
    for (flag, typed) in [("kube-api-qps", "--kube_api_qps"), ("v", "-v"), ("leader-elect", "--leader-elect")] {
        assert_eq!(settings.origin(flag), Some(&Origin::Argument(typed.to_owned())));
    }
    assert_eq!(settings.origin("kube-api-burst"), Some(&Origin::Default));
}

#[test]
fn an_explicit_default_differs_from_no_flag() {
    let settings = load_arguments(&["--leader-elect=true"]).expect("the flag is good");
    assert_eq!(settings.get::<bool>("leader-elect").ok(), Some(true));
    assert_eq!(settings.origin("leader-elect"), Some(&Origin::Argument("--leader-elect".to_owned())));
}

#[test]
fn mistakes_are_refused_with_what_was_probably_meant() {
    let unknown = |typed: &str, nearest: Option<&str>| {
        argument(typed, Problem::UnknownFlag { nearest: nearest.map(str::to_owned) })
    };
    let letter = |typed: &str, letter, nearest: Option<&str>| {
        argument(typed, Problem::UnknownShorthand { letter, nearest: nearest.map(str::to_owned) })
    };
    let positional =
        |typed: &str, after: Option<&str>| argument(typed, Problem::Positional { after: after.map(str::to_owned) });
    let cases = [
        (&["--kube-api-qsp=1"][..], vec![unknown("--kube-api-qsp", Some("--kube-api-qps"))]),
        (&["--kube-api-qsp", "1"], vec![unknown("--kube-api-qsp", Some("--kube-api-qps"))]),
        (&["--completely-unknown=1m"], vec![unknown("--completely-unknown", None)]),
        (&["--", "x"], vec![positional("x", None)]),
        (&["-kubeconfig=x"], vec![letter("-kubeconfig", 'k', Some("--kubeconfig"))]),
        (&["-x"], vec![letter("-x", 'x', Some("--v"))]),
        (&["replicaset"], vec![positional("replicaset", None)]),
        (&["-"], vec![positional("-", None)]),
        (&["--leader-elect", "false"], vec![positional("false", Some("--leader-elect"))]),
        (
            &["--kube-api-burst"],
            vec![argument("--kube-api-burst", Problem::MissingValue { expected: Kind::Int32.expected().to_owned() })],
        ),
        (
            &["--kube-api-burst=many"],
            vec![argument("--kube-api-burst", wrong_type("--kube-api-burst", "\"many\"", Kind::Int32.expected()))],
        ),
        (
            &["--min-resync-period=12"],
            vec![argument(
                "--min-resync-period",
                wrong_type("--min-resync-period", "\"12\"", Kind::Duration.expected()),
            )],
        ),
        (
            &["--concurrent-replicaset-syncs=0"],
            vec![argument(
                "--concurrent-replicaset-syncs",
                Problem::Refused {
                    setting: "--concurrent-replicaset-syncs".to_owned(),
                    given: "\"0\"".to_owned(),
                    reason: "must be greater than zero".to_owned(),
                },
            )],
        ),
        (
            &["--feature-gates=DeploymentReplicaSetTerminatingReplica=false"],
            vec![argument(
                "--feature-gates",
                Problem::UnknownGate {
                    gate: "DeploymentReplicaSetTerminatingReplica".to_owned(),
                    nearest: Some("DeploymentReplicaSetTerminatingReplicas".to_owned()),
                },
            )],
        ),
    ];
    for (arguments, expected) in cases {
        assert_eq!(load_arguments(arguments).err(), Some(expected), "{arguments:?}");
    }
}

#[test]
fn what_upstream_has_removed_is_refused_with_its_successor() {
    let cases = [
        (
            &["--port", "0"][..],
            "--port: Kubernetes has removed this flag: there is no port without encryption; use --secure-port",
        ),
        (
            &["--horizontal_pod_autoscaler_downscale_delay=5m"],
            "--horizontal_pod_autoscaler_downscale_delay: Kubernetes has removed this flag: \
             use --horizontal-pod-autoscaler-downscale-stabilization",
        ),
        (
            &["--register-retry-count=10"],
            "--register-retry-count: Kubernetes has removed this flag: it had no effect any more; leave it out",
        ),
    ];
    for (arguments, expected) in cases {
        let errors = load_arguments(arguments).expect_err("it is removed");
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    }
    for flag in [
        "deployment-controller-sync-period",
        "pod-eviction-timeout",
        "enable-taint-manager",
        "horizontal-pod-autoscaler-upscale-delay",
        "address",
        "logtostderr",
    ] {
        let errors = load_arguments(&[&format!("--{flag}")]).expect_err("it is removed");
        assert!(matches!(&errors[..], [error] if matches!(error.problem, Problem::RemovedFlag { .. })), "{errors:?}");
    }
}

#[test]
fn the_version_is_asked_for_as_upstream_takes_it() {
    let version = |arguments: &[&str]| match table().load(&Sources::default().arguments(arguments)) {
        Ok(Loaded::Version(request)) => Some(request),
        Ok(Loaded::Help | Loaded::Settings(_)) | Err(_) => None,
    };
    for arguments in [&["--version"][..], &["--version=true"], &["--v=2", "--version=T"]] {
        assert_eq!(version(arguments), Some(VersionRequest::Short), "{arguments:?}");
    }
    assert_eq!(version(&["--version=raw"]), Some(VersionRequest::Raw));
    assert_eq!(version(&["--version", "--nope"]), None, "mistakes come first");
    assert!(load_arguments(&["--version=false"]).is_ok());
    let refused = load_arguments(&["--version=v1.2.3"]).expect_err("it cannot be changed");
    assert!(matches!(refused[0].problem, Problem::Refused { .. }), "{refused:?}");
    let wrong = load_arguments(&["--version=x"]).expect_err("it is no version");
    let expected = wrong_type("--version", "\"x\"", "true, false or raw");
    assert_eq!(wrong, [argument("--version", expected)]);
}

#[test]
fn every_mistake_is_reported_at_once() {
    let errors = load_arguments(&["--nope=1", "stray", "-v=x", "--kube-api-qps=fast", "--leader-elect=maybe"]);
    let typed: Vec<String> = errors.expect_err("all are wrong").iter().map(|error| error.origin.to_string()).collect();
    assert_eq!(typed, ["--nope", "stray", "-v", "--kube-api-qps", "--leader-elect"]);
}

#[cfg(unix)]
#[test]
fn arguments_and_variables_that_are_no_text_are_refused() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    let garbage = || OsString::from_vec(vec![b'-', b'-', 0xff]);
    let errors = load(&Sources::default().arguments([garbage()]).variables([(OsString::from("KCM_V"), garbage())]));
    let problems: Vec<Problem> = errors.expect_err("both are garbage").into_iter().map(|error| error.problem).collect();
    assert_eq!(problems, [Problem::NotText, Problem::NotText]);
}

#[test]
fn help_is_given_when_asked_for_even_beside_mistakes() {
    for arguments in [&["--help"][..], &["-h"], &["--nope", "--help"]] {
        let outcome = table().load(&Sources::default().arguments(arguments));
        assert!(matches!(outcome, Ok(Loaded::Help)), "{arguments:?}");
    }
    // Here it is a value.
    assert!(load_arguments(&["--kubeconfig", "--help"]).is_ok());
}

#[test]
fn help_stands_under_the_headings_of_upstream() {
    let help = table().help(None);
    for heading in ["Generic flags:", "Logs flags:", "Misc flags:", "Replicaset-controller flags:", "Global flags:"] {
        assert!(help.contains(heading), "{heading} in {help}");
    }
    assert!(help.contains("-v, --v Level"), "{help}");
    assert!(help.contains("(default 12h0m0s)"), "{help}");
    assert!(!help.contains("--hello-old"), "a deprecated flag is hidden in {help}");
}

#[test]
fn a_deprecated_flag_works_and_is_noticed() {
    let settings = load_arguments(&["--hello-old"]).expect("it still works");
    assert_eq!(settings.get::<bool>("hello-old").ok(), Some(true));
    let expected = Warning::Deprecated {
        origin: Origin::Argument("--hello-old".to_owned()),
        flag: "hello-old",
        advice: "say hello-greeting instead",
    };
    assert_eq!(settings.warnings(), std::slice::from_ref(&expected));
    let sources = Sources::default().arguments(["--hello-old", "--hello-old"]).variables([("KCM_HELLO_OLD", "true")]);
    assert_eq!(load(&sources).expect("it still works").warnings(), [expected], "once, however often it is given");
}

#[test]
fn gates_that_go_away_or_have_no_effect_are_warned_of() {
    let settings = load_arguments(&[
        "--feature-gates=SELinuxMountReadWriteOncePod=true,PodDeletionCost=false,StorageVersionAPI=true",
    ]);
    let warnings: Vec<String> =
        settings.expect("the gates are known").warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "--feature-gates: feature gate SELinuxMountReadWriteOncePod is generally available, and will be removed",
            "--feature-gates: feature gate SELinuxMountReadWriteOncePod has no effect: nothing that reads it is part of this program",
            "--feature-gates: feature gate StorageVersionAPI has no effect: nothing that reads it is part of this program",
        ]
    );
    let honoured = load_arguments(&["--feature-gates=JobManagedBy=true,StaleControllerConsistencyReplicaSet=false"]);
    let warnings: Vec<String> =
        honoured.expect("the gates are known").warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        ["--feature-gates: feature gate JobManagedBy is generally available, and will be removed"],
        "what jobs honour has an effect"
    );
    let only_known = load_arguments(&["--feature-gates=KubeletCrashLoopBackOffMax=false"]).expect("the gate is known");
    assert_eq!(only_known.warnings(), [], "kube-controller-manager does not read it either");
}

#[test]
fn versions_decide_about_gates() {
    let gate = "AtomicFIFO";
    let settings = load_arguments(&["--emulated-version=1.35"]).expect("the version can be emulated");
    assert!(!settings.gates().is_on(gate));
    assert!(load_arguments(&[]).expect("nothing is good").gates().is_on(gate));
    let errors = load_arguments(&["--emulated-version=kube=1.35", "--feature-gates=AtomicFIFO=true"]);
    let errors: Vec<String> = errors.expect_err("it is too new").iter().map(ToString::to_string).collect();
    assert_eq!(errors, ["--feature-gates: feature gate AtomicFIFO is not there yet in the emulated version 1.35"]);
    let errors = load_arguments(&["--emulated-version=1.20", "--min-compatibility-version=next"]);
    let errors: Vec<String> = errors.expect_err("both are wrong").iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "--emulated-version is \"1.20\": the value must be between 1.34 and 1.37",
            "--min-compatibility-version is \"next\": the value must be a version as MAJOR.MINOR, such as 1.36",
        ]
    );
}
