//! Files that are no configuration.

#![cfg(feature = "builtin")]

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use crate::support::program::{Ended, Folder, run};
use rustix::fs::{CWD, Mode, mkfifoat};

const HEAD: &str =
    "apiVersion: kubecontrollermanager.config.k8s.io/v1alpha1\nkind: KubeControllerManagerConfiguration\n";

fn start(file: &Path) -> Ended {
    run(env!("CARGO_BIN_EXE_kube-controller-manager"), &["--config", &file.display().to_string()])
}

/// The only reason for not starting, without the name of the file.
#[track_caller]
fn refusal(file: &Path) -> String {
    let ended = start(file);
    let [refusal] = ended.refusals()[..] else { panic!("{}", ended.stderr) };
    refusal.strip_prefix(&file.display().to_string()).expect("it names the file").to_owned()
}

fn refusal_of(text: &str) -> String {
    let folder = Folder::new();
    folder.file("kcm.yaml", text);
    refusal(&folder.path("kcm.yaml"))
}

#[test]
fn what_is_no_regular_file_is_refused_in_one_sentence() {
    let folder = Folder::new();
    let cannot = |why: &str| format!(": cannot read the configuration file: {why}");
    assert_eq!(refusal(folder.as_ref()), cannot("it is a directory (named by --config): name the file in it"));
    let pipe = folder.path("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR).expect("there must be room for a pipe");
    let socket = folder.path("socket");
    let _listener = UnixListener::bind(&socket).expect("there must be room for a socket");
    for file in [&pipe, &socket, Path::new("/dev/zero")] {
        assert_eq!(
            refusal(file),
            cannot("it is a pipe, a socket or a device (named by --config): name a regular file")
        );
    }
    assert_eq!(
        refusal(&folder.path("none")),
        cannot("No such file or directory (os error 2) (named by --config): check the path")
    );
    let under_a_file = Path::new("/dev/null/x");
    assert_eq!(refusal(under_a_file), cannot("Not a directory (os error 20) (named by --config): check the path"));
}

/// A file that this process can never read: root may read files of any mode, but not a file that the kernel makes
/// write-only.
fn file_without_rights(folder: &Folder) -> PathBuf {
    folder.file("kcm.yaml", HEAD);
    let path = folder.path("kcm.yaml");
    fs::set_permissions(&path, Permissions::from_mode(0o000)).expect("it is our own");
    if File::open(&path).is_err() { path } else { PathBuf::from("/proc/sys/vm/compact_memory") }
}

#[test]
fn a_file_that_may_not_be_read_is_refused_with_what_to_do() {
    let folder = Folder::new();
    assert_eq!(
        refusal(&file_without_rights(&folder)),
        ": cannot read the configuration file: Permission denied (os error 13) (named by --config): \
         give the user of this process the right to read it"
    );
}

#[test]
fn a_file_that_fails_while_it_is_read_is_refused() {
    assert_eq!(
        refusal(Path::new("/proc/self/mem")),
        ": cannot read the configuration file: Input/output error (os error 5) (named by --config)"
    );
}

#[test]
fn a_file_of_50_megabytes_is_refused_in_one_sentence() {
    let folder = Folder::new();
    let path = folder.path("large");
    let file = File::create(&path).expect("there must be room for a file");
    file.set_len(50_000_000).expect("it takes no room");
    assert_eq!(
        refusal(&path),
        ": cannot read the configuration file: it is larger than 1 MiB (named by --config): \
         a configuration file is a few kilobytes, so check the path"
    );
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    let mut lines: Vec<String> = (0..count).map(line).collect();
    lines.push(String::new());
    lines.join("\n")
}

#[test]
fn a_thousand_nested_levels_are_refused_with_their_position() {
    for (text, expected) in [
        (format!("{HEAD}A: {}", "[".repeat(1000)), ":3:20"),
        (format!("{HEAD}A: {}", "{a: ".repeat(1000)), ":3:61"),
        (format!("{HEAD}A:\n{}", "- ".repeat(1000)), ":4:31"),
        (HEAD.to_owned() + &lines(1000, |level| format!("{}a:", " ".repeat(level))), ":18:16"),
    ] {
        assert_eq!(refusal_of(&text), format!("{expected}: so many nested values are not supported here"));
    }
}

#[test]
fn aliases_that_multiply_are_refused_with_their_position() {
    let laughs = "a: &a [x, x, x, x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\n";
    assert_eq!(refusal_of(laughs), ":1:7: anchors and aliases are not supported here");
}

#[test]
fn a_file_full_of_mistakes_reports_the_first_hundred() {
    let folder = Folder::new();
    let keys = lines(50_000, |number| format!("k{number}: 1"));
    let ended = start(Path::new(&folder.file("kcm.yaml", &format!("{HEAD}{keys}"))));
    let refusals = ended.refusals();
    assert_eq!(refusals.len(), 101);
    assert!(refusals[0].ends_with("kcm.yaml:3:1: unknown key k0"), "{}", refusals[0]);
    assert!(refusals[100].ends_with("kcm.yaml: 49900 more errors, not reported one by one"), "{}", refusals[100]);
}

/// The limit on addresses leaves no room for the data that a careless reader would make. The program itself uses
/// addresses too.
#[test]
fn no_file_takes_much_memory() {
    const MOST_KIBIBYTES: u32 = 512 * 1024;
    let folder = Folder::new();
    let full_of = |unit: &str| unit.repeat(((1 << 20) - 300) / unit.len());
    for text in [
        format!("{HEAD}A: [{}]\n", full_of("x,")),
        format!("{HEAD}A:\n{}", full_of("- x\n")),
        format!("{HEAD}A: [{}]\n", full_of("{},")),
        format!("{HEAD}Generic: {{x: 1, Controllers: [{}]}}\n", full_of("\"\",")),
        HEAD.to_owned() + &lines(150_000, |number| format!("{number:x}:")),
        format!("{HEAD}A: \"{}\"\n", full_of("\\n")),
        format!("{HEAD}{}: 1\n", full_of("k")),
    ] {
        let file = folder.file("kcm.yaml", &text);
        let program = env!("CARGO_BIN_EXE_kube-controller-manager");
        let limited = format!("ulimit -v {MOST_KIBIBYTES}; exec {program} --config {file}");
        let ended = run("/bin/sh", &["-c", &limited]);
        assert_eq!(ended.code, Some(1), "{}: {}", &text[HEAD.len()..HEAD.len() + 20], ended.stderr);
        assert!(!ended.errors().is_empty() && ended.stderr.len() < 20_000, "{} bytes", ended.stderr.len());
    }
}
