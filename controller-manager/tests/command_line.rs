//! What the binary makes of its command line.

#![cfg(feature = "builtin")]

mod support;

use support::program::{Ended, Folder, run};

fn manager(arguments: &[&str]) -> Ended {
    run(env!("CARGO_BIN_EXE_kube-controller-manager"), arguments)
}

#[test]
fn the_help_has_every_flag_under_its_heading() {
    let help = manager(&["--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    let headings = ["Generic", "Logs", "Misc", "Replicaset-controller", "Global"];
    let flags_of = |heading: &str| -> Vec<&str> {
        let after = help.stdout.split_once(&format!("\n{heading} flags:\n")).expect("the heading must be there").1;
        let lines = after.lines().take_while(|line| !line.is_empty()).filter(|line| line.trim_start().starts_with('-'));
        lines.filter_map(|line| line.split_once("--")?.1.split([' ', '[']).next()).collect()
    };
    assert_eq!(
        headings.map(flags_of),
        [
            &[
                "controller-start-interval",
                "controllers",
                "feature-gates",
                "kube-api-burst",
                "kube-api-qps",
                "leader-elect",
                "min-resync-period"
            ][..],
            &["v"],
            &["config", "kubeconfig"],
            &["concurrent-replicaset-syncs"],
            &["help"]
        ]
    );
    assert!(help.stdout.starts_with(
        "Usage: kube-controller-manager [FLAGS]\n       kube-controller-manager config effective [FLAGS]\n       \
         kube-controller-manager config validate FILE [FLAGS]\n       kube-controller-manager config default\n"
    ));
    assert_eq!(manager(&["-h"]).stdout, help.stdout);
    // A sub-command has flags of its own beside these.
    let of_config = manager(&["config", "effective", "--help"]).stdout;
    let (before, own) = of_config.split_once("Config flags:\n").expect("it has flags of its own");
    let (own, after) = own.split_once("\n\n").expect("other flags follow");
    assert!(own.contains("--output <string>"), "{own}");
    assert_eq!(format!("{before}{after}"), help.stdout);
}

#[test]
fn every_mistake_is_told_at_once_with_the_nearest_flag() {
    let ended = manager(&[
        "--kubecofnig=x",
        "--cluster-name",
        "kubernetes",
        "start",
        "--leader-elect",
        "false",
        "--concurrent-replicaset-syncs=0",
        "--controller-start-interval=5",
    ]);
    assert_eq!(
        ended.refusals(),
        [
            "--kubecofnig: unknown flag; did you mean --kubeconfig?",
            "--cluster-name: unknown flag; --help lists all flags",
            "start: arguments that are not flags are not taken",
            "false: arguments that are not flags are not taken; the value of --leader-elect is given with an equals sign",
            "--controller-start-interval is \"5\", expected a duration with units, such as 1m30s",
            "--concurrent-replicaset-syncs is \"0\": the value must be greater than zero",
        ]
    );
}

#[test]
fn values_that_do_not_go_together_are_told_at_once() {
    let ended =
        manager(&["--controllers=*,replicasets,job,-deployment,zzz", "--leader-elect=true", "--kube-api-burst=-1"]);
    assert_eq!(
        ended.refusals(),
        [
            "--controllers: \"replicasets\" is not in the list of known controllers; did you mean \"replicaset\"?",
            "--controllers: the controller \"job-controller\" is not part of this binary yet: \
             let another controller manager run it, and leave it out here",
            "--controllers: \"zzz\" is not in the list of known controllers",
            "--leader-elect: there is no leader election yet: give --leader-elect=false and run a single replica",
            "--kube-api-burst: a burst of -1 lets no request pass: give at least 1, or --kube-api-qps=-1 for no limit",
        ]
    );
}

#[test]
fn a_value_is_refused_where_it_was_given() {
    let folder = Folder::new();
    let file = folder.file(
        "kcm.json",
        r#"{ "apiVersion": "kubecontrollermanager.config.k8s.io/v1alpha1", "kind": "KubeControllerManagerConfiguration",
  "generic": { "leaderElection": { "leaderElect": true } } }"#,
    );
    assert_eq!(
        manager(&["--config", &file]).refusals(),
        [format!("{file}:2:36: there is no leader election yet: give --leader-elect=false and run a single replica")]
    );
}

/// Ends for want of a kubeconfig, after everything that is checked before.
fn without_kubeconfig(arguments: &[&str]) -> Ended {
    let ended = manager(arguments);
    assert_eq!(
        ended.refusals(),
        ["no --kubeconfig was given and this process does not run in a pod (KUBERNETES_SERVICE_HOST is not set): \
          give --kubeconfig=FILE"]
    );
    ended
}

#[test]
fn a_missing_lease_is_warned_of_unless_nobody_wants_one() {
    let warning = "\"There is no leader election yet: run a single replica; --leader-elect=false silences this\"";
    let warnings = |arguments| without_kubeconfig(arguments).warnings().join("\n");
    assert!(warnings(&[]).ends_with(warning));
    assert_eq!(warnings(&["--leader-elect=false"]), "");
}

#[test]
fn what_upstream_takes_is_taken() {
    for arguments in [
        // Left out is what is not there in any case.
        &["--controllers=-job-controller,-nodeipam,*"][..],
        &["--controllers", "-replicaset"],
        // Client-go's default.
        &["--kube-api-burst=0"],
        &["--kube-api-burst=-1", "--kube_api_qps=-1"],
        &["--leader-elect=F", "-v4"],
    ] {
        without_kubeconfig(arguments);
    }
}

#[test]
fn a_verb_that_nobody_knows_is_told_the_one_there_is() {
    for arguments in [&["config"][..], &["config", "efective"]] {
        assert_eq!(
            manager(arguments).refusals(),
            ["config: give `config effective` to print every setting and where its value comes from, \
              `config validate FILE` to check a file, `config default` to print one with all defaults, or --config=FILE to read settings from a file"]
        );
    }
}

#[test]
fn a_kubeconfig_that_cannot_be_read_is_refused() {
    let folder = Folder::new();
    let missing = folder.path("none");
    assert_eq!(
        manager(&[&format!("--kubeconfig={}", missing.display())]).refusals(),
        [format!("the kubeconfig {missing:?} does not exist: check the path given with --kubeconfig")]
    );
    let broken = folder.file("broken", "clusters: [");
    let ended = manager(&["--kubeconfig", &broken]);
    let [refusal] = ended.refusals()[..] else { panic!("{}", ended.stderr) };
    assert!(refusal.starts_with(&format!("the kubeconfig {broken:?} is not a valid `kind: Config` file: ")));
}
