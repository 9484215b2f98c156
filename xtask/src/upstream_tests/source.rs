//! A copy of the module k8s.io/kubernetes in which controllers run as another process.
//!
//! The Go files are edited as lines of text: an import is added, and one statement at the start of each controller's
//! `Run`. An edit whose place is not found is an error, so a new version of upstream cannot pass by running itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{control_plane, step};

const PACKAGE: &str = include_str!("otherprocess.go");
const CONTROLLERS: &str = include_str!("../../data/upstream-controllers.tsv");
const IMPORT: &str = "import (\n\t\"k8s.io/kubernetes/pkg/otherprocess\"\n";

/// The folder of the edited copy.
pub(crate) struct Source {
    folder: PathBuf,
}

impl Source {
    /// Copies and edits the module, unless that was done before from the same inputs.
    ///
    /// The copy lies in `k8s.io/kubernetes` beneath the folder, because `-trimpath` leaves only this part of the path
    /// of each file, and the test API server looks for its certificates beside its own source.
    pub(crate) fn prepare(folder: &Path) -> Result<Self> {
        let folder = folder.join("k8s.io/kubernetes");
        let upstream = control_plane::kubernetes_source()?;
        let sums = step::root().join("e2e/control-plane/kubernetes/go.sum");
        let sums = read(&sums)?;
        let stamp = format!("{}\n{sums}{CONTROLLERS}{PACKAGE}", upstream.display());
        let stamp_file = folder.with_extension("stamp");
        let source = Self { folder };
        if fs::read_to_string(&stamp_file).is_ok_and(|found| found == stamp) {
            return Ok(source);
        }
        println!("copying {} to {}", upstream.display(), source.folder.display());
        if source.folder.exists() {
            fs::remove_dir_all(&source.folder).with_context(|| format!("cannot clear {}", source.folder.display()))?;
        }
        copy(&upstream, &source.folder)?;
        source.edit("go.mod", |text| Ok(with_released_staging(text, &staging_version()?)))?;
        source.edit("go.sum", |text| Ok(format!("{text}{sums}")))?;
        source.redirect_controllers()?;
        source.remember_servers()?;
        source.serve_metrics()?;
        write(&stamp_file, &stamp)?;
        Ok(source)
    }

    /// The folder of a package of integration tests, in which its tests run.
    pub(crate) fn tests(&self, package: &str) -> Result<PathBuf> {
        let folder = self.folder.join("test/integration").join(package);
        ensure!(folder.is_dir(), "Kubernetes has no test/integration/{package}");
        Ok(folder)
    }

    /// Compiles a package's tests to `binary`.
    pub(crate) fn build(&self, package: &str, binary: &Path) -> Result<()> {
        // As the control plane is built, so that what it compiled is taken from Go's cache.
        let mut go = Command::new("go");
        go.current_dir(&self.folder).env("CGO_ENABLED", "0").env("GOWORK", "off");
        go.args(["test", "-c", "-mod=mod", "-vet=off", "-trimpath", "-ldflags=-s -w", "-o"]).arg(binary);
        step::run(go.arg(format!("./test/integration/{package}")))
    }

    fn redirect_controllers(&self) -> Result<()> {
        let folder = self.folder.join("pkg/otherprocess");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        write(&folder.join("otherprocess.go"), PACKAGE)?;
        for row in CONTROLLERS.lines().skip(1) {
            let [controller, file, condition] =
                row.split('\t').collect::<Vec<_>>().try_into().ok().with_context(|| format!("{row:?} is no row"))?;
            self.edit(&format!("pkg/controller/{file}"), |text| redirected(text, controller, condition))?;
        }
        Ok(())
    }

    fn remember_servers(&self) -> Result<()> {
        self.edit("cmd/kube-apiserver/app/testing/testserver.go", |text| {
            let place = "\tresult.ServerOpts = s\n";
            with_import(&inserted(text, place, "\totherprocess.Remember(result.ClientConfig)\n")?)
        })?;
        self.edit("test/integration/framework/test_server.go", |text| {
            let place = "\treturn kubeAPIServerClient, kubeAPIServerClientConfig, tearDownFn\n";
            with_import(&inserted(text, place, "\totherprocess.Remember(kubeAPIServerClientConfig)\n")?)
        })?;
        // Upstream looks for goroutines that its controllers left behind; the proxies of other processes are no leaks.
        self.edit("test/integration/framework/etcd.go", |text| {
            inserted(text, "\tif err := goleakFindRetry(", "\tif result >= 0 {\n\t\tos.Exit(result)\n\t}\n")
        })
    }

    fn serve_metrics(&self) -> Result<()> {
        self.edit("test/integration/podautoscaler/util.go", |text| {
            with_import(&inserted(text, "\treturn c, &metricValue\n", "\totherprocess.ServeExternalMetrics(c)\n")?)
        })
    }

    fn edit(&self, file: &str, change: impl FnOnce(&str) -> Result<String>) -> Result<()> {
        let path = self.folder.join(file);
        let text = read(&path)?;
        write(&path, &change(&text).with_context(|| format!("cannot edit upstream's {file}"))?)
    }
}

/// The version of the modules that are developed in `staging`, by what the control plane is built from: `v0.37.2`.
fn staging_version() -> Result<String> {
    let go_mod = read(&step::root().join("e2e/control-plane/kubernetes/go.mod"))?;
    let version = control_plane::required_version(&go_mod, "k8s.io/client-go");
    Ok(version.context("the control plane's go.mod does not require k8s.io/client-go")?.to_owned())
}

/// Takes the modules that upstream develops in its own repository from the releases of each.
fn with_released_staging(go_mod: &str, version: &str) -> String {
    let released = go_mod.lines().map(|line| match line.split_once(" => ./staging/src/") {
        Some((module, path)) => format!("{module} => {path} {version}\n"),
        None => format!("{line}\n"),
    });
    released.collect()
}

/// Makes `Run` start another process if `condition` holds (always, if it is empty).
fn redirected(go: &str, controller: &str, condition: &str) -> Result<String> {
    let signature = go.lines().find(|line| line.starts_with("func (") && line.contains(") Run("));
    let signature = signature.context("no method Run")?;
    let (receiver, parameters) = signature
        .trim_start_matches("func (")
        .split_once(") Run(")
        .with_context(|| format!("{signature:?} is not understood"))?;
    let receiver = receiver.split(' ').next().unwrap_or_default();
    let first = parameters.split([',', ')']).next().unwrap_or_default();
    let (name, kind) = first.split_once(' ').with_context(|| format!("{signature:?} takes no context"))?;
    let run = if kind == "context.Context" { "Run" } else { "RunUntil" };
    let condition = match condition.replace("RECEIVER", receiver) {
        condition if condition.is_empty() => condition,
        condition => format!("{condition} && "),
    };
    let result = if signature.ends_with(") error {") { "return nil" } else { "return" };
    let statement = format!("\tif {condition}otherprocess.{run}({name}, \"{controller}\") {{\n\t\t{result}\n\t}}\n");
    let line = format!("{signature}\n");
    with_import(&go.replacen(&line, &format!("{line}{statement}"), 1))
}

fn with_import(go: &str) -> Result<String> {
    ensure!(go.contains("import (\n"), "no block of imports");
    // A file may hold the `Run` of several controllers.
    Ok(if go.contains(IMPORT) { go.to_owned() } else { go.replacen("import (\n", IMPORT, 1) })
}

fn inserted(go: &str, before: &str, statement: &str) -> Result<String> {
    ensure!(go.contains(before), "there is no {before:?}");
    Ok(go.replacen(before, &format!("{statement}{before}"), 1))
}

/// Copies the files of a folder and makes them writable: files of Go's module cache are not.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let entry = entry.with_context(|| format!("cannot list {}", from.display()))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().with_context(|| format!("cannot look at {}", source.display()))?.is_dir() {
            copy(&source, &target)?;
        } else {
            let content = fs::read(&source).with_context(|| format!("cannot read {}", source.display()))?;
            fs::write(&target, content).with_context(|| format!("cannot write {}", target.display()))?;
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::{inserted, redirected, with_released_staging};

    #[test]
    fn run_starts_another_process_first() {
        let go =
            "import (\n\t\"context\"\n)\n\nfunc (c *Controller) Run(ctx context.Context, workers int) {\n\twork()\n}\n";
        let expected = "import (\n\t\"k8s.io/kubernetes/pkg/otherprocess\"\n\t\"context\"\n)\n\n\
                        func (c *Controller) Run(ctx context.Context, workers int) {\n\
                        \tif c.isMine && otherprocess.Run(ctx, \"x-controller\") {\n\t\treturn\n\t}\n\twork()\n}\n";
        assert_eq!(redirected(go, "x-controller", "RECEIVER.isMine").expect("it has a Run"), expected);
    }

    #[test]
    fn run_may_take_a_stop_channel() {
        let go = "import (\n)\nfunc (c Controller) Run(stopCh <-chan struct{}) {\n}\n";
        let edited = redirected(go, "x", "").expect("it has a Run");
        assert!(edited.contains("\tif otherprocess.RunUntil(stopCh, \"x\") {\n"), "{edited}");
    }

    #[test]
    fn run_may_return_an_error() {
        let go = "import (\n)\nfunc (c *Controller) Run(ctx context.Context) error {\n}\n";
        let edited = redirected(go, "x", "").expect("it has a Run");
        assert!(edited.contains("\tif otherprocess.Run(ctx, \"x\") {\n\t\treturn nil\n\t}\n"), "{edited}");
    }

    #[test]
    fn a_place_that_is_not_found_is_an_error() {
        assert!(redirected("import (\n)\n", "x", "").is_err());
        assert!(inserted("a\n", "b\n", "c\n").is_err());
    }

    #[test]
    fn staging_modules_come_from_their_releases() {
        let go_mod = "replace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n)\n";
        assert_eq!(with_released_staging(go_mod, "v0.1.2"), "replace (\n\tk8s.io/api => k8s.io/api v0.1.2\n)\n");
    }
}
