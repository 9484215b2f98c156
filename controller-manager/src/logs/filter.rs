//! Rules for printing log lines: `--v` and `--vmodule`.

use kcm_config::ModuleLevel;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};

use super::pattern::matches;

const DEBUG: i32 = 4;
const TRACE: i32 = 6;

/// Libraries that log every frame and every poll, which helps only after everything else.
const TRANSPORT: [&str; 6] = ["h2", "hyper", "hyper_util", "kube_client", "rustls", "tower"];
const TRANSPORT_DEBUG: i32 = 8;
const TRANSPORT_TRACE: i32 = 10;

/// Rules for printing log events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Filter {
    verbosity: i32,
    modules: Vec<ModuleLevel>,
}

impl Filter {
    /// Makes a filter with the verbosity of `--v`. A negative verbosity is 0, because klog prints unconditional lines
    /// at any verbosity.
    pub(crate) fn new(verbosity: i32) -> Self {
        Self { verbosity: verbosity.max(0), modules: Vec::new() }
    }

    /// Prints warnings and errors only.
    pub(crate) fn warnings() -> Self {
        Self { verbosity: -1, modules: Vec::new() }
    }

    /// Raises the verbosity if a pattern matches. The first matching pattern counts.
    ///
    /// A pattern is compared with the name of the source file (without `.rs`; the folder's for a `mod.rs`), as
    /// upstream's are, and also with the module path and with the name of the controller that is reconciling.
    pub(crate) fn modules(self, modules: Vec<ModuleLevel>) -> Self {
        Self { modules, ..self }
    }

    /// Returns the filter with another verbosity and the same patterns.
    pub(crate) fn verbosity(self, verbosity: i32) -> Self {
        Self { verbosity: verbosity.max(0), ..self }
    }

    /// The most detailed level that may be printed anywhere.
    pub(super) fn most_detailed(&self) -> LevelFilter {
        match self.highest() {
            TRACE.. => LevelFilter::TRACE,
            DEBUG.. => LevelFilter::DEBUG,
            0.. => LevelFilter::INFO,
            _ => LevelFilter::WARN,
        }
    }

    fn highest(&self) -> i32 {
        self.modules.iter().map(|module| module.level).fold(self.verbosity, i32::max)
    }

    /// Returns `true` if the events of a call site are always printed, `false` if never, and `None` if it depends on
    /// the event.
    pub(super) fn always(&self, site: &Metadata<'_>) -> Option<bool> {
        let needed = verbosity_of_site(site);
        if self.highest() < needed {
            Some(false)
        } else if self.verbosity >= needed && !has_verbosity(site) {
            Some(true)
        } else {
            None
        }
    }

    /// Returns `true` if an event of a call site with the verbosity `own` is printed within the reconciles of
    /// `controllers`.
    pub(super) fn prints<'a>(
        &self,
        site: &Metadata<'_>,
        own: Option<i32>,
        controllers: impl Iterator<Item = &'a str>,
    ) -> bool {
        let needed = own.map_or(verbosity_of_site(site), |own| own.max(verbosity_of_site(site)));
        self.verbosity >= needed
            || (self.highest() >= needed && self.of_modules(site, controllers).is_some_and(|it| it >= needed))
    }

    fn of_modules<'a>(&self, site: &Metadata<'_>, controllers: impl Iterator<Item = &'a str>) -> Option<i32> {
        let controllers: Vec<&str> = controllers.collect();
        let decides = self.modules.iter().find(|module| {
            let matches = |name: &str| matches(&module.pattern, name);
            site.file().map(file_name).is_some_and(matches)
                || site.module_path().is_some_and(matches)
                || controllers.iter().any(|name| matches(name))
        })?;
        Some(decides.level)
    }
}

/// The verbosity from which on events of a call site are printed, unless they ask for more.
///
/// As klog's conventions have it, 0 to 3 are for operators (an event may ask for 1 to 3 with a field `v`), 4 and 5 for
/// debugging, 6 and more for tracing. Errors and warnings are always printed.
pub(super) fn verbosity_of_site(site: &Metadata<'_>) -> i32 {
    let is_transport = TRANSPORT.contains(&site.target().split("::").next().unwrap_or_default());
    match *site.level() {
        Level::ERROR | Level::WARN => i32::MIN,
        Level::INFO | Level::DEBUG if is_transport => TRANSPORT_DEBUG,
        Level::TRACE if is_transport => TRANSPORT_TRACE,
        Level::INFO => 0,
        Level::DEBUG => DEBUG,
        Level::TRACE => TRACE,
    }
}

/// Returns `true` if events of a call site have a verbosity of their own, as in `info!(v = 2, …)`.
pub(super) fn has_verbosity(site: &Metadata<'_>) -> bool {
    *site.level() == Level::INFO && site.fields().field(VERBOSITY).is_some()
}

/// The field that gives an event at info level a verbosity of its own.
pub(super) const VERBOSITY: &str = "v";

/// Returns the name of a source file for upstream's patterns: without folders and extension. For a `mod.rs` it is the
/// folder's name.
fn file_name(path: &str) -> &str {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let path = path.strip_suffix("/mod").unwrap_or(path);
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use kcm_config::{Kind, Value};

    use super::*;

    /// The metadata of a call site with a level, a target, and fields.
    macro_rules! site {
        ($level:ident, $target:literal, $file:literal $(, $field:literal)*) => {{
            struct Site;
            impl tracing::callsite::Callsite for Site {
                fn set_interest(&self, _: tracing::subscriber::Interest) {}
                fn metadata(&self) -> &Metadata<'_> {
                    &METADATA
                }
            }
            static SITE: Site = Site;
            static METADATA: Metadata<'static> = Metadata::new(
                "event",
                $target,
                Level::$level,
                Some($file),
                Some(1),
                Some($target),
                tracing::field::FieldSet::new(&[$($field),*], tracing::callsite::Identifier(&SITE)),
                tracing::metadata::Kind::EVENT,
            );
            &METADATA
        }};
    }

    fn with_modules(text: &str) -> Filter {
        let Some(Value::ModuleLevels(modules)) = Kind::ModuleLevels.parse(text) else { panic!("{text} must be valid") };
        Filter::new(0).modules(modules)
    }

    fn prints(filter: &Filter, site: &Metadata<'_>) -> bool {
        filter.prints(site, None, std::iter::empty())
    }

    #[test]
    fn verbosity_follows_klog() {
        let sites = [
            site!(ERROR, "kcm_framework", "framework/src/lib.rs"),
            site!(WARN, "kcm_framework", "framework/src/lib.rs"),
            site!(INFO, "kcm_framework", "framework/src/lib.rs"),
            site!(DEBUG, "kcm_framework", "framework/src/lib.rs"),
            site!(TRACE, "kcm_framework", "framework/src/lib.rs"),
        ];
        let printed = |filter: Filter| sites.iter().filter(|site| prints(&filter, site)).count();
        assert_eq!([-1, 0, 3, 4, 5, 6, 10].map(|v| printed(Filter::new(v))), [3, 3, 3, 4, 4, 5, 5]);
        assert_eq!(printed(Filter::warnings()), 2);
        let most_detailed = [0, 4, 6].map(|v| Filter::new(v).most_detailed());
        assert_eq!(most_detailed, [LevelFilter::INFO, LevelFilter::DEBUG, LevelFilter::TRACE]);
        assert_eq!(Filter::warnings().most_detailed(), LevelFilter::WARN);
    }

    #[test]
    fn an_event_may_ask_for_a_verbosity_of_its_own() {
        let site = site!(INFO, "kcm_framework", "framework/src/lib.rs", "message", "v");
        assert_eq!(Filter::new(2).always(site), None);
        let prints = |v| Filter::new(v).prints(site, Some(2), std::iter::empty());
        assert_eq!([0, 1, 2, 3].map(prints), [false, false, true, true]);
    }

    #[test]
    fn the_transport_is_silent_until_everything_is_asked_for() {
        let transport = site!(DEBUG, "h2::codec", "src/codec.rs");
        let polls = site!(TRACE, "h2::codec", "src/codec.rs");
        let own = site!(TRACE, "custom_controller", "src/lib.rs");
        let at = |verbosity| [transport, polls, own].map(|site| prints(&Filter::new(verbosity), site));
        assert_eq!([6, 8, 10].map(at), [[false, false, true], [true, false, true], [true, true, true]]);
    }

    #[test]
    fn a_pattern_names_a_file_a_module_or_a_controller() {
        let worker = site!(DEBUG, "kcm_framework::reconcile::worker", "framework/src/reconcile/worker.rs");
        let manager = site!(DEBUG, "kcm_framework::manager", "framework/src/manager/mod.rs");
        let cases = [
            ("worker=4", [true, false]),
            ("work*=4", [true, false]),
            ("worker=3", [false, false]),
            ("manager=9", [false, true]),
            ("kcm_framework::reconcile::*=4", [true, false]),
            ("*=4", [true, true]),
            // The first that matches counts.
            ("worker=0,*=4", [false, true]),
            ("reconcile=4", [false, false]),
        ];
        for (modules, expected) in cases {
            let filter = with_modules(modules);
            assert_eq!([worker, manager].map(|site| prints(&filter, site)), expected, "{modules}");
            assert_eq!(filter.always(worker), (modules == "worker=3").then_some(false), "{modules}");
        }
        let filter = with_modules("replicaset-*=4");
        assert!(filter.prints(worker, None, ["replicaset-controller"].into_iter()));
        assert!(!filter.prints(worker, None, ["deployment-controller"].into_iter()));
    }
}
