//! A copy of the module k8s.io/kubernetes in which controllers run as another process.
//!
//! The Go files are edited as lines of text: an import is added, and one statement at the start of each controller's
//! `Run`. An edit whose place is not found is an error, so a new version of upstream cannot pass by running itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{control_plane, step};

/// The files of the package that the copy gets.
const PACKAGE: [(&str, &str); 2] =
    [("otherprocess.go", include_str!("otherprocess.go")), ("standin.go", include_str!("standin.go"))];
/// The edits, so that a change of them makes a new copy.
const SOURCE: &str = include_str!("source.rs");
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
        let stamp =
            format!("{}\n{sums}{CONTROLLERS}{}{SOURCE}", upstream.display(), PACKAGE.map(|(_, text)| text).concat());
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
        source.start_managers()?;
        source.keep_settings()?;
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
        for (name, text) in PACKAGE {
            write(&folder.join(name), text)?;
        }
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

    /// Tests that start a whole manager start the binary with the same flags.
    fn start_managers(&self) -> Result<()> {
        self.edit("cmd/kube-controller-manager/app/testing/testserver.go", |text| {
            let statement = "\tif end, err := otherprocess.Start(ctx, customFlags); end != nil || err != nil {\n\t\t\
                             result.TearDownFn = end\n\t\treturn result, err\n\t}\n";
            with_import(&inserted(text, "\tfs := pflag.NewFlagSet(\"test\"", statement)?)
        })?;
        // The test reads a metric of the publisher from the API server, which shares its registry with upstream's
        // manager in the test's process.
        self.edit("test/integration/clustertrustbundles/apiserversigner_test.go", |text| {
            let statement = "\tif body, err := otherprocess.Metrics(ctx); body != nil || err != nil {\n\t\t\
                             return body, err\n\t}\n";
            let reader = "\nfunc readMetrics(ctx context.Context, client *rest.RESTClient) ([]byte, error) {\n";
            let rest = "\treturn client.Get().AbsPath(\"/metrics\").DoRaw(ctx)\n}\n";
            let read = "rc.Get().AbsPath(\"/metrics\").DoRaw(ctx)";
            ensure!(text.contains(read), "there is no {read:?}");
            let text = text.replace(read, "readMetrics(ctx, rc)");
            with_import(&format!("{text}{reader}{statement}{rest}"))
        })
    }

    /// Arguments that a test passes to the constructor of a controller become flags of the binary.
    fn keep_settings(&self) -> Result<()> {
        self.edit("pkg/controller/certificates/signer/signer.go", |text| {
            let place = "\treturn NewCSRSigningController(ctx, \"csrsigning-kube-apiserver-client\"";
            let statement = "\totherprocess.SetSigner(caFile, caKeyFile, certTTL)\n";
            with_import(&inserted(text, place, statement)?)
        })?;
        // Volumes of a provisioner whose name begins with `kubernetes.io/` come from the manager itself.
        self.edit("test/integration/volume/persistent_volumes_test.go", |text| {
            let name = "\"kubernetes.io/mock-provisioner\"";
            ensure!(text.contains(name), "there is no {name}");
            Ok(text.replace(name, "\"mock-provisioner.kubernetes.io\""))
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
