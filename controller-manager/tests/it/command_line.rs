//! The command line of the binary.

#![cfg(feature = "builtin")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Stdio};

use crate::support::program::{Ended, Folder, run};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

fn manager(arguments: &[&str]) -> Ended {
    run(env!("CARGO_BIN_EXE_kube-controller-manager"), arguments)
}

#[test]
fn the_help_has_every_flag_under_its_heading() {
    let help = manager(&["--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    let mut headings = BTreeMap::new();
    let mut heading = "";
    for line in help.stdout.lines() {
        let flag = line.split_once("--").filter(|(before, _)| before.trim_end_matches(", ").trim().len() <= 2);
        match (line.strip_suffix(" flags:"), flag) {
            (Some(section), _) => heading = section,
            (None, Some((_, flag))) if line.starts_with(' ') => {
                headings.insert(flag.split(' ').next().unwrap_or(flag), heading);
            }
            (None, _) => {}
        }
    }
    let flags = include_str!("../../../config/tests/data/flags.tsv").lines().skip(1);
    let flags = flags.map(|line| line.split('\t').collect::<Vec<_>>()).filter(|fields| !fields[5].contains("hidden"));
    let mut expected: BTreeMap<&str, &str> = flags.map(|fields| (fields[1], fields[0])).collect();
    let own_flags = include_str!("../../../config/tests/data/own-flags.tsv").lines().skip(1);
    expected.extend(own_flags.filter_map(|line| line.split_once('\t')).map(|(section, name)| (name, section)));
    assert_eq!(headings, expected);
    assert!(help.stdout.starts_with(
        "Usage: kube-controller-manager [FLAGS]\n       kube-controller-manager config effective [FLAGS]\n       \
         kube-controller-manager config validate FILE [FLAGS]\n       kube-controller-manager config default\n"
    ));
    assert_eq!(manager(&["-h"]).stdout, help.stdout);
    // A sub-command has further flags of its own.
    let of_config = manager(&["config", "effective", "--help"]).stdout;
    let (before, own) = of_config.split_once("Config flags:\n\n").expect("it has flags of its own");
    let (own, after) = own.split_once("\n\n").expect("other flags follow");
    assert!(own.contains("--output string"), "{own}");
    assert_eq!(format!("{before}{after}"), help.stdout);
}

/// Returns the output of `--help` on a terminal of this width.
fn help_on_a_terminal(columns: u16, variables: &[(&str, &str)]) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there must be a terminal");
    grantpt(&terminal).and_then(|()| unlockpt(&terminal)).expect("the terminal is our own");
    tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })
        .expect("a terminal has a size");
    let name = ptsname(&terminal, Vec::new()).expect("a terminal has a name");
    let output = File::options().read(true).write(true).open(OsStr::from_bytes(name.to_bytes()));
    let mut program = Command::new(env!("CARGO_BIN_EXE_kube-controller-manager"))
        .arg("--help")
        .env_clear()
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(output.expect("the terminal can be opened"))
        .spawn()
        .expect("the program must start");
    let (mut terminal, mut printed, mut buffer) = (File::from(terminal), Vec::new(), [0; 4096]);
    // Its end is an error on Linux.
    while let Ok(count @ 1..) = terminal.read(&mut buffer) {
        printed.extend_from_slice(&buffer[..count]);
    }
    assert!(program.wait().expect("it was started").success());
    String::from_utf8(printed).expect("programs print UTF-8").replace('\r', "")
}

#[test]
fn the_help_is_wrapped_to_the_width_of_the_terminal() {
    let words = |help: &str| help.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let unwrapped = manager(&["--help"]).stdout;
    for (columns, set, expected) in [
        (72, None, Some(72)),
        (100, None, Some(100)),
        (200, None, Some(200)),
        (200, Some("132"), Some(132)),
        // A serial line does not know its width.
        (0, Some("132"), Some(132)),
        (0, None, None),
        (200, Some("wide"), Some(200)),
    ] {
        let variables: Vec<(&str, &str)> = set.map(|set| ("COLUMNS", set)).into_iter().collect();
        let help = help_on_a_terminal(columns, &variables);
        let Some(width) = expected else {
            assert_eq!(help, unwrapped, "{columns} columns, {set:?}");
            continue;
        };
        assert_eq!(words(&help), words(&unwrapped), "{columns} columns, {set:?}");
        // Usages stand on a line each, and a word is not broken.
        let (_usage, flags) = help.split_once("\n\n").expect("flags follow the usage");
        let longest = flags.lines().filter(|line| line.trim().contains(' ')).map(|line| line.chars().count()).max();
        let longest = longest.expect("there are flags");
        assert!((width - 10..=width).contains(&longest), "{longest} of {width}; {columns} columns, {set:?}");
    }
    let piped = crate::support::program::run_with(
        env!("CARGO_BIN_EXE_kube-controller-manager"),
        &["--help"],
        &[("COLUMNS", "72")],
    );
    assert_eq!(piped.stdout, unwrapped, "what is no terminal has no width");
}

#[test]
fn every_mistake_is_told_at_once_with_the_nearest_flag() {
    let ended = manager(&[
        "--kubecofnig=x",
        "--telepathy",
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
            "--telepathy: unknown flag; --help lists all flags",
            "start: arguments that are not flags are not taken",
            "false: arguments that are not flags are not taken; the value of --leader-elect is given with an equals sign",
            "--controller-start-interval is \"5\", expected a duration with units, such as 1m30s",
            "--concurrent-replicaset-syncs is \"0\": the value must be greater than zero",
        ]
    );
}

#[test]
fn values_that_do_not_go_together_are_told_at_once() {
    let ended = manager(&[
        "--controllers=*,replicasets,-deployment,zzz",
        "--leader-elect-renew-deadline=15s",
        "--kube-api-burst=-1",
    ]);
    assert_eq!(
        ended.refusals(),
        [
            "--controllers: \"replicasets\" is not in the list of known controllers; did you mean \"replicaset\"?",
            "--controllers: \"zzz\" is not in the list of known controllers",
            "--kube-api-burst: a burst of -1 lets no request pass: give at least 1, or --kube-api-qps=-1 for no limit",
            "--leader-elect-lease-duration: \"15s\" must be greater than --leader-elect-renew-deadline, which is 15s",
        ]
    );
}

#[test]
fn a_value_is_refused_where_it_was_given() {
    let folder = Folder::new();
    let file = folder.file(
        "kcm.json",
        r#"{ "apiVersion": "kubecontrollermanager.config.k8s.io/v1alpha1", "kind": "KubeControllerManagerConfiguration",
  "generic": { "leaderElection": { "renewDeadline": "2s" } } }"#,
    );
    assert_eq!(
        manager(&["--config", &file]).refusals(),
        [format!("{file}:2:36: \"2s\" must be greater than 1.2 times --leader-elect-retry-period, which is 2s")]
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
fn a_star_leaves_out_no_controller_of_upstream() {
    for arguments in [&["--leader-elect=false"][..], &["--leader-elect=false", "--controllers=*"]] {
        assert_eq!(without_kubeconfig(arguments).warnings(), [""; 0]);
    }
}

#[test]
fn unknown_controllers_are_refused_also_if_controllers_may_be_missing() {
    let unknown = manager(&["--allow-missing-controllers", "--controllers=bootstrapsiner"]);
    assert_eq!(
        unknown.refusals(),
        [
            "--controllers: \"bootstrapsiner\" is not in the list of known controllers; did you mean \"bootstrapsigner\"?"
        ]
    );
}

#[test]
fn given_settings_without_effect_are_warned_of() {
    let ended =
        without_kubeconfig(&["--contention-profiling", "--node-sync-period=1s", "--concurrent-replicaset-syncs=9"]);
    let warnings = ended.warnings().into_iter();
    let lines = warnings.filter_map(|line| line.split_once("These settings have no effect"));
    assert_eq!(
        lines.map(|(_, line)| line.trim_end_matches('"')).collect::<Vec<_>>(),
        [" yet: --contention-profiling", ", as in upstream: --node-sync-period",]
    );
}

#[test]
fn the_version_is_that_of_kubernetes_and_our_own() {
    let ended = manager(&["--version"]);
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.stdout.lines().next(), Some("Kubernetes v1.37.2"));
    assert!(manager(&["--version=raw"]).stdout.starts_with("{\"kubernetes\":\"v1.37.2\","));
}

#[test]
fn an_address_without_credentials_is_refused() {
    assert_eq!(
        manager(&["--master=https://10.0.0.1:6443"]).refusals(),
        ["--master: an address without credentials cannot be used: give --kubeconfig as well"]
    );
}

#[test]
fn what_upstream_takes_is_taken() {
    for arguments in [
        // Controllers that do not exist here are left out.
        &["--controllers=-ephemeral-volume-controller,-nodeipam,*"][..],
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
