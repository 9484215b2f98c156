//! Upstream's controllers that run beside the manager under test, because scenarios need what they do.
//!
//! None of them may be one that our manager has: what it claims to do is never done for it.

use anyhow::{Result, bail};
use kcm_controllers as _;
use kcm_framework::Registry;

use crate::control_plane::ControlPlane;
use crate::manager;
use crate::process::Process;
use crate::scenario::LIMITS;
use crate::subject::Subject;

/// Starts upstream's manager with `controllers`, given by their canonical names.
///
/// # Errors
///
/// If one of the controllers is linked into our manager, or upstream's cannot be started.
pub(crate) fn start(plane: &ControlPlane, controllers: &[&str]) -> Result<Process> {
    check(controllers, &linked()?)?;
    let controllers = format!("--controllers={}", controllers.join(","));
    let args: Vec<&str> = [controllers.as_str()].iter().chain(&LIMITS).copied().collect();
    manager::start(Subject::Peer, plane, "helpers", &args)
}

/// The names and aliases of the controllers that are linked into our manager.
fn linked() -> Result<Vec<&'static str>> {
    match Registry::linked() {
        Ok(registry) => Ok(registry
            .iter()
            .flat_map(|controller| std::iter::once(controller.name()).chain(controller.other_names().iter().copied()))
            .collect()),
        Err(errors) => bail!("our controllers cannot be listed: {errors:?}"),
    }
}

/// Fails if upstream's manager would run a controller of ours; `*` and `-name` hide what runs, so they fail too.
fn check(controllers: &[&str], ours: &[&str]) -> Result<()> {
    for name in controllers {
        if ours.contains(name) {
            bail!("`{name}` is to be run by our manager, and not by upstream's as a helper");
        }
        if name.contains('*') || name.starts_with('-') {
            bail!("`{name}` does not say which controllers a helper runs: name each");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{check, linked};

    #[test]
    fn a_helper_never_runs_a_controller_of_ours_by_name_or_alias() {
        let ours = linked().expect("our controllers are linked");
        for name in ["replicaset-controller", "replicaset", "deployment-controller", "deployment"] {
            let refusal = check(&["namespace-controller", name], &ours).expect_err("it is ours").to_string();
            assert!(refusal.contains(name), "{refusal}");
        }
    }

    #[test]
    fn a_helper_names_what_it_runs() {
        assert!(check(&["*"], &[]).is_err());
        assert!(check(&["-deployment-controller"], &[]).is_err());
        assert!(check(&["namespace-controller"], &[]).is_ok());
    }

    #[test]
    fn the_helpers_of_suite_and_benchmark_are_not_ours() {
        let ours = linked().expect("our controllers are linked");
        check(&crate::suite::HELPERS, &ours).expect("the suite's helpers are upstream's");
        check(&crate::bench::HELPERS, &ours).expect("the benchmark's helpers are upstream's");
    }
}
