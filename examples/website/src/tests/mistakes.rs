//! Operators with a mistake each, which the search must find.

use std::collections::BTreeSet;
use std::sync::Arc;

use kcm_framework::api::{Typed, View as _};
use kcm_framework::{
    BoxError, ControllerContext, ControllerDescriptor, Loops, ReconcileError, ReconcileObject, Session, Source,
    async_trait,
};
use kcm_simulation::{Budget, search};
use parking_lot::Mutex;

use super::simulation::served;
use crate::reconcile::Operator;
use crate::website::{FINALIZER, Website};
use crate::{WEBSITES, operator};

/// The finalizer is removed before the host is free.
const FINALIZER_FIRST: u8 = 1;
/// The host is published before the finalizer is there.
const PUBLISHED_FIRST: u8 = 2;
/// Only a host that this process has published is freed.
const REMEMBERED_IN_MEMORY: u8 = 3;

struct Mistaken<const MISTAKE: u8> {
    operator: Operator,
    published: Mutex<BTreeSet<String>>,
}

#[async_trait]
impl<const MISTAKE: u8> ReconcileObject<Typed<Website>> for Mistaken<MISTAKE> {
    async fn reconcile(&self, cached: &Arc<Typed<Website>>, session: &Session) -> Result<(), ReconcileError> {
        let websites = session.of(const { &WEBSITES });
        let (website, meta) = (&cached.object, cached.meta());
        let (hosts, host, name) = (&self.operator.hosts, &website.spec.host, website.full_name());
        match (MISTAKE, meta.is_terminating()) {
            (FINALIZER_FIRST, true) => {
                websites.remove_finalizer(meta, FINALIZER).await?;
                hosts.free(host, &name).await?;
                return Ok(());
            }
            (PUBLISHED_FIRST, false) => drop(hosts.publish(host, &name).await?),
            (REMEMBERED_IN_MEMORY, false) => drop(self.published.lock().insert(name)),
            (REMEMBERED_IN_MEMORY, true) if !self.published.lock().contains(&name) => {
                websites.remove_finalizer(meta, FINALIZER).await?;
                return Ok(());
            }
            _ => {}
        }
        self.operator.reconcile(cached, session).await
    }
}

fn init<const MISTAKE: u8>(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop("website");
    let websites = control_loop.primary_for(Source::of(WEBSITES));
    let mistaken = Mistaken::<MISTAKE> { operator: operator(context, &mut control_loop)?, published: Mutex::default() };
    Ok(control_loop.reconcile_objects(websites, mistaken).into())
}

/// Searches for a mistake. Returns the rule that breaks, and the schedule that shows it.
fn found<const MISTAKE: u8>() -> (String, String) {
    let mistaken = ControllerDescriptor::new("website-controller", init::<MISTAKE>);
    let search = search(&served(mistaken), Budget::runs(400));
    let finding = search.findings.first().unwrap_or_else(|| panic!("nothing is found in {} runs", search.runs));
    (finding.violation.rule.clone(), finding.schedule.to_string())
}

#[test]
fn a_finalizer_that_is_removed_before_the_host_is_free_is_found() {
    let (rule, _) = found::<FINALIZER_FIRST>();
    assert_eq!(rule, "W1");
}

#[test]
fn a_host_that_is_published_before_the_finalizer_is_there_is_found() {
    let (rule, schedule) = found::<PUBLISHED_FIRST>();
    assert_eq!((rule.as_str(), schedule.contains("act delete")), ("W1", true), "{schedule}");
}

#[test]
fn a_host_that_only_the_memory_of_a_process_knows_is_found() {
    let (rule, schedule) = found::<REMEMBERED_IN_MEMORY>();
    assert_eq!((rule.as_str(), schedule.contains("kill")), ("W1", true), "{schedule}");
}
