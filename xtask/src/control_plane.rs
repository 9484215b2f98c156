//! `cargo xtask control-plane`: builds the programs that the e2e suite runs, from Go modules.
//!
//! Each folder of `e2e/control-plane/` is a small Go module whose `tool` directives name what is
//! built. The binaries lie in `.control-plane/bin`, which git ignores and `cargo clean` leaves
//! alone. Beside each lies a stamp, the content of everything that it was built from: a binary whose
//! stamp matches is not built again, and a build that was stopped goes on from Go's own build cache.
//! Binaries in `KUBEBUILDER_ASSETS` are used and not built.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::step;

/// A folder of `e2e/control-plane/`, and what is built from it.
struct Module {
    folder: &'static str,
    /// The module whose version the binaries report.
    upstream: &'static str,
    tools: &'static [Tool],
    /// Linker flags; `VERSION` stands for the version that `go.mod` requires.
    ldflags: &'static str,
}

struct Tool {
    binary: &'static str,
    package: &'static str,
}

/// The API server parses this version: it decides which gates and APIs exist.
const KUBERNETES_FLAGS: &str = "-s -w -X k8s.io/component-base/version.gitVersion=VERSION \
                                -X k8s.io/component-base/version.gitTreeState=clean";

const MODULES: [Module; 6] = [
    Module {
        folder: "etcd",
        upstream: "go.etcd.io/etcd/server/v3",
        tools: &[Tool { binary: "etcd", package: "go.etcd.io/etcd/server/v3" }],
        ldflags: "-s -w",
    },
    Module {
        folder: "helm",
        upstream: "helm.sh/helm/v3",
        tools: &[Tool { binary: "helm", package: "helm.sh/helm/v3/cmd/helm" }],
        ldflags: "-s -w -X helm.sh/helm/v3/internal/version.version=VERSION",
    },
    Module {
        folder: "kwok",
        upstream: "sigs.k8s.io/kwok",
        tools: &[Tool { binary: "kwok", package: "sigs.k8s.io/kwok/cmd/kwok" }],
        ldflags: "-s -w -X sigs.k8s.io/kwok/pkg/consts.Version=VERSION",
    },
    Module {
        folder: "promql",
        upstream: "github.com/prometheus/prometheus",
        tools: &[Tool { binary: "promql", package: "control-plane/promql" }],
        ldflags: "-s -w",
    },
    Module {
        folder: "kubernetes",
        upstream: "k8s.io/kubernetes",
        tools: &[
            Tool { binary: "kube-apiserver", package: "k8s.io/kubernetes/cmd/kube-apiserver" },
            Tool { binary: "kube-controller-manager", package: "k8s.io/kubernetes/cmd/kube-controller-manager" },
            Tool { binary: "kube-scheduler", package: "k8s.io/kubernetes/cmd/kube-scheduler" },
            Tool { binary: "kubectl", package: "k8s.io/kubernetes/cmd/kubectl" },
        ],
        ldflags: KUBERNETES_FLAGS,
    },
    // After Kubernetes, with which it has nearly all packages in common.
    Module {
        folder: "metrics-server",
        upstream: "sigs.k8s.io/metrics-server",
        tools: &[Tool { binary: "metrics-server", package: "sigs.k8s.io/metrics-server/cmd/metrics-server" }],
        ldflags: "-s -w -X k8s.io/client-go/pkg/version.gitVersion=VERSION",
    },
];

/// Files of kwok's configuration, each gathered from manifests of its module: without them kwok leaves nodes and pods as they
/// are, and does not say what they use.
const KWOK_FILES: [(&str, &[&str]); 2] = [
    (
        "kwok-stages.yaml",
        &[
            "stage/node/fast/node-initialize.yaml",
            "stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
            "stage/pod/fast/pod-ready.yaml",
            "stage/pod/fast/pod-complete.yaml",
            "stage/pod/fast/pod-delete.yaml",
        ],
    ),
    ("kwok-usage.yaml", &["metrics/resource/metrics-resource.yaml", "metrics/usage/usage-from-annotation.yaml"]),
];

/// The API server of the minor version before, for scenarios of a control plane in the middle of an upgrade.
const OLDER: Module = Module {
    folder: "kubernetes-1.36",
    upstream: "k8s.io/kubernetes",
    tools: &[Tool { binary: "kube-apiserver-1.36", package: "k8s.io/kubernetes/cmd/kube-apiserver" }],
    ldflags: KUBERNETES_FLAGS,
};

/// Builds [`OLDER`] if it is missing or out of date, and the rest of the control plane.
pub(crate) fn build_with_older() -> Result<()> {
    build()?;
    Target::new()?.build(&OLDER)
}

/// Builds what is missing or out of date.
pub(crate) fn build() -> Result<()> {
    let target = Target::new()?;
    for module in &MODULES {
        target.build(module)?;
    }
    for (name, parts) in KWOK_FILES {
        target.kwok_file(name, parts)?;
    }
    println!("control plane: ready in {}", target.folder.display());
    Ok(())
}

/// The folder of the binaries, and a folder that may have some of them already.
struct Target {
    folder: PathBuf,
    assets: Option<PathBuf>,
}

impl Target {
    fn new() -> Result<Self> {
        let folder = step::root().join(".control-plane");
        for part in ["bin", "stamps"] {
            let part = folder.join(part);
            fs::create_dir_all(&part).with_context(|| format!("cannot make the folder {}", part.display()))?;
        }
        let assets = std::env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(assets) = assets.as_ref().filter(|assets| !assets.is_dir()) {
            bail!("KUBEBUILDER_ASSETS is {}, which is not a folder: correct it or unset it", assets.display());
        }
        Ok(Self { folder, assets })
    }

    fn build(&self, module: &Module) -> Result<()> {
        let source = Source::read(module)?;
        let mut stale = Vec::new();
        for tool in module.tools {
            if let Some(given) = self.given(tool.binary) {
                check_version(&given, &source.version)?;
                println!("{}: taken from {}", tool.binary, given.display());
            } else if !self.is_current(tool.binary, &source.stamp) {
                stale.push(tool);
            }
        }
        if stale.is_empty() {
            return Ok(());
        }
        go_is_there()?;
        let names: Vec<&str> = stale.iter().map(|tool| tool.binary).collect();
        println!("{} {}: building (minutes on a machine that never did)", names.join(", "), source.version);
        for tool in stale {
            // Built aside and moved, so that a stopped build leaves no half binary.
            let aside = self.folder.join(format!("{}.new", tool.binary));
            let mut command = go(&source.folder);
            command.args(["build", "-trimpath", "-ldflags", &source.ldflags, "-o"]).arg(&aside).arg(tool.package);
            step::run(&mut command)?;
            put(&aside, &self.binary(tool.binary))?;
            self.stamp(tool.binary, &source.stamp)?;
        }
        Ok(())
    }

    /// Gathers manifests of kwok's module in one file.
    fn kwok_file(&self, name: &str, parts: &[&str]) -> Result<()> {
        let module = MODULES.iter().find(|module| module.folder == "kwok").context("kwok is not among the modules")?;
        let source = Source::read(module)?;
        let stamp = format!("{}\n{parts:?}", source.stamp);
        let file = self.folder.join(name);
        if file.is_file() && self.has_stamp(name, &stamp) {
            return Ok(());
        }
        let folder = source_of(module)?.join("kustomize");
        let mut text = String::new();
        for part in parts {
            let path = folder.join(part);
            let part =
                fs::read_to_string(&path).with_context(|| format!("cannot read kwok's manifest {}", path.display()))?;
            text.push_str("---\n");
            text.push_str(&part);
            text.push('\n');
        }
        let aside = self.folder.join(format!("{name}.new"));
        fs::write(&aside, text).with_context(|| format!("cannot write {}", aside.display()))?;
        put(&aside, &file)?;
        self.stamp(name, &stamp)
    }

    /// The path of a program that `KUBEBUILDER_ASSETS` holds.
    fn given(&self, name: &str) -> Option<PathBuf> {
        self.assets.as_ref().map(|assets| assets.join(name)).filter(|given| given.is_file())
    }

    fn binary(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }

    fn is_current(&self, name: &str, stamp: &str) -> bool {
        self.binary(name).is_file() && self.has_stamp(name, stamp)
    }

    fn has_stamp(&self, name: &str, stamp: &str) -> bool {
        fs::read_to_string(self.stamp_file(name)).is_ok_and(|found| found == stamp)
    }

    fn stamp(&self, name: &str, stamp: &str) -> Result<()> {
        let file = self.stamp_file(name);
        fs::write(&file, stamp).with_context(|| format!("cannot write {}", file.display()))
    }

    fn stamp_file(&self, name: &str) -> PathBuf {
        self.folder.join("stamps").join(name)
    }
}

/// The path of a built program of the control plane.
pub(crate) fn program(name: &str) -> Result<PathBuf> {
    let target = Target::new()?;
    Ok(target.given(name).unwrap_or_else(|| target.binary(name)))
}

/// `PATH` with the control plane's programs first.
pub(crate) fn path() -> Result<OsString> {
    let target = Target::new()?;
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let folders = target.assets.into_iter().chain([target.folder.join("bin")]);
    std::env::join_paths(folders.chain(std::env::split_paths(&inherited))).context("a folder's name has a colon")
}

/// The folder of Kubernetes' source, downloaded if it is missing.
pub(crate) fn kubernetes_source() -> Result<PathBuf> {
    let kubernetes = MODULES.iter().find(|module| module.folder == "kubernetes");
    source_of(kubernetes.context("Kubernetes is not among the modules")?)
}

fn source_of(module: &Module) -> Result<PathBuf> {
    go_is_there()?;
    let source = Source::read(module)?;
    step::run(go(&source.folder).args(["mod", "download", module.upstream]))?;
    let found = step::output(go(&source.folder).args(["list", "-m", "-f", "{{.Dir}}", module.upstream]))?;
    Ok(PathBuf::from(found.trim()))
}

/// Refuses a program of another version: what it would show is not what the pinned version does.
fn check_version(program: &Path, version: &str) -> Result<()> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    // A program of this repository has no version.
    if name == "promql" {
        return Ok(());
    }
    // kubectl has a sub-command for it, and connects to a server without `--client`.
    let args: &[&str] = match &*name {
        "kubectl" => &["version", "--client"],
        "helm" => &["version", "--template={{.Version}}"],
        _other => &["--version"],
    };
    let printed = step::output(Command::new(program).args(args))
        .with_context(|| format!("cannot find out the version of {} (KUBEBUILDER_ASSETS)", program.display()))?;
    if !names_version(&printed, version) {
        bail!(
            "{} (KUBEBUILDER_ASSETS) is not {name} {version}: it prints {:?}; let KUBEBUILDER_ASSETS name a folder with \
             {version}, or unset it to build what is missing",
            program.display(),
            printed.lines().next().unwrap_or_default()
        );
    }
    Ok(())
}

/// Returns `true` if a program that prints this has the version, with or without the leading `v`.
fn names_version(printed: &str, version: &str) -> bool {
    let number = |word: &str| word.trim_start_matches('v').to_owned();
    printed.split_whitespace().any(|word| number(word) == number(version))
}

fn put(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).with_context(|| format!("cannot move {} to {}", from.display(), to.display()))
}

/// The source of a module's binaries.
struct Source {
    folder: PathBuf,
    version: String,
    ldflags: String,
    stamp: String,
}

impl Source {
    fn read(module: &Module) -> Result<Self> {
        let folder = step::root().join("e2e/control-plane").join(module.folder);
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        let (go_mod, go_sum) = (read("go.mod")?, read("go.sum")?);
        let version = required_version(&go_mod, module.upstream)
            .with_context(|| format!("{}/go.mod does not require {}", folder.display(), module.upstream))?
            .to_owned();
        let ldflags = module.ldflags.replace("VERSION", &version);
        // Only a module with a program of its own has this file.
        let main = fs::read_to_string(folder.join("main.go")).unwrap_or_default();
        let stamp = format!("{ldflags}\n{go_mod}\n{go_sum}{main}");
        Ok(Self { folder, version, ldflags, stamp })
    }
}

/// The version at which a `go.mod` requires a module.
pub(crate) fn required_version<'a>(go_mod: &'a str, module: &str) -> Option<&'a str> {
    go_mod.lines().find_map(|line| {
        let mut words = line.trim().trim_start_matches("require ").split_whitespace();
        (words.next() == Some(module)).then(|| words.next()).flatten().filter(|version| version.starts_with('v'))
    })
}

/// `go` in a module's folder. Without cgo no C compiler is needed, and the binaries are static,
/// as upstream ships them.
fn go(folder: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(folder).env("CGO_ENABLED", "0").env("GOWORK", "off");
    command
}

fn go_is_there() -> Result<()> {
    if step::answers("go", &["version"]) {
        return Ok(());
    }
    bail!(
        "the control plane is built from Go modules, and `go version` does not answer: \
         install Go 1.26 or newer, or let KUBEBUILDER_ASSETS name a folder with \
         etcd, helm, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, kwok and promql"
    )
}

#[cfg(test)]
mod tests {
    use super::{MODULES, Source, names_version, required_version};

    #[test]
    fn a_program_of_another_version_is_told_apart() {
        for printed in
            ["Kubernetes v1.36.3", "etcd Version: 1.36.3\nGit SHA: 1", "kwok version v1.36.3 go1.26 (linux/amd64)"]
        {
            assert!(names_version(printed, "v1.36.3"), "{printed}");
        }
        for printed in ["Kubernetes v1.36.30", "Kubernetes v1.36.3-rc.1", "Kubernetes v1.35.3", ""] {
            assert!(!names_version(printed, "v1.36.3"), "{printed}");
        }
    }

    #[test]
    fn the_required_version_is_found_in_a_line_and_in_a_block() {
        let go_mod = "module m\n\nrequire a.b/c v1.2.3\n\nrequire (\n\td.e/f v0.1.0 // indirect\n)\n\nreplace g.h/i => g.h/i v9.9.9\n";
        assert_eq!(required_version(go_mod, "a.b/c"), Some("v1.2.3"));
        assert_eq!(required_version(go_mod, "d.e/f"), Some("v0.1.0"));
        assert_eq!(required_version(go_mod, "g.h/i"), None);
    }

    #[test]
    fn every_module_names_its_tools_as_its_go_mod_does() {
        for module in &MODULES {
            let source = Source::read(module).expect("the module's files must be in the repository");
            for tool in module.tools {
                assert!(
                    source.stamp.contains(tool.package),
                    "{} is not in the go.mod of {}",
                    tool.package,
                    module.folder
                );
            }
        }
    }
}
