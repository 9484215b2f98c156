//! Controllers that run beside the manager under test, because scenarios need what they do.
//!
//! Our manager runs those that it has, upstream's the others: what ours claims to do is never done for it.

use anyhow::{Result, bail};
use kcm_controllers as _;
use kcm_framework::Registry;

use crate::control_plane::ControlPlane;
use crate::manager;
use crate::process::Process;
use crate::scenario::LIMITS;
use crate::subject::Subject;

/// Starts managers with `controllers`, given by their canonical names.
///
/// # Errors
///
/// If a name is none of one controller, or a manager cannot be started.
pub fn start(plane: &ControlPlane, controllers: &[&str]) -> Result<Vec<Process>> {
    let (ours, upstreams) = divided(controllers, &linked()?)?;
    [(Subject::Ours, ours), (Subject::Peer, upstreams)]
        .into_iter()
        .filter(|(_, controllers)| !controllers.is_empty())
        .map(|(subject, controllers)| run(subject, plane, &controllers))
        .collect()
}

/// Starts our manager with those of `controllers` that it has.
///
/// # Errors
///
/// As those of [`start`].
pub fn start_ours(plane: &ControlPlane, controllers: &[&str]) -> Result<Vec<Process>> {
    let (ours, _) = divided(controllers, &linked()?)?;
    Ok(if ours.is_empty() { Vec::new() } else { vec![run(Subject::Ours, plane, &ours)?] })
}

fn run(subject: Subject, plane: &ControlPlane, controllers: &[&str]) -> Result<Process> {
    let controllers = format!("--controllers={}", controllers.join(","));
    let roles = if subject == Subject::Ours { manager::with_upstreams_roles(plane) } else { Vec::new() };
    let args: Vec<&str> =
        [controllers.as_str()].into_iter().chain(LIMITS).chain(roles.iter().map(String::as_str)).collect();
    manager::start(subject, plane, &format!("helpers-{subject}"), &args)
}

/// The names of the controllers that are linked into our manager.
fn linked() -> Result<Vec<&'static str>> {
    match Registry::linked() {
        Ok(registry) => Ok(registry.iter().map(|controller| controller.name).collect()),
        Err(errors) => bail!("our controllers cannot be listed: {errors:?}"),
    }
}

/// Divides controllers into ours and those of upstream; `*`, `-name` and aliases hide what runs, so they fail.
fn divided<'a>(controllers: &[&'a str], ours: &[&str]) -> Result<(Vec<&'a str>, Vec<&'a str>)> {
    if let Some(name) = controllers.iter().find(|name| name.starts_with('-') || !name.ends_with("-controller")) {
        bail!("`{name}` does not say which controllers a helper runs: give the canonical name of each");
    }
    Ok(controllers.iter().partition(|name| ours.contains(name)))
}

#[cfg(test)]
mod tests {
    use super::{divided, linked};

    #[test]
    fn our_manager_runs_the_helpers_that_it_has() {
        assert!(linked().expect("our controllers are linked").contains(&"namespace-controller"));
        let (ours, upstreams) =
            divided(&["namespace-controller", "lamp-controller"], &["namespace-controller"]).expect("both are named");
        assert_eq!((ours, upstreams), (vec!["namespace-controller"], vec!["lamp-controller"]));
    }

    #[test]
    fn a_helper_names_what_it_runs() {
        for name in ["*", "-deployment-controller", "namespace"] {
            assert!(divided(&[name], &[]).is_err(), "{name}");
        }
    }
}
