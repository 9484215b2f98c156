//! Schedules of failures, kept as files beside the scenario: each test of the scenario replays them.
//!
//! ```text
//! # scenario replicaset scaled up
//! # rule O2
//! # planted ConflictIsSuccess
//! replicaset shop/web write 10: fail before 409
//! ```

use std::fmt;
use std::io;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use kcm_framework::api::Fnv1a;

use super::Reference;
use crate::conductor::{Observe, Run, perform_planted};
use crate::plant::Plant;
use crate::scenario::Scenario;
use crate::schedule::Schedule;

/// Name of the folder beside the file of the scenario.
const FOLDER: &str = "schedules";
/// Ending of the names of the files.
const ENDING: &str = "schedule";

/// A schedule that has broken a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    scenario: String,
    /// The rule that it has broken.
    rule: String,
    /// The bug that it shows. Without one, the bug was in the controller and is mended.
    plant: Option<Plant>,
    schedule: Schedule,
}

impl Kept {
    pub(super) fn new(scenario: &Scenario, rule: &str, schedule: &Schedule) -> Self {
        let (scenario, rule) = (scenario.name().to_owned(), rule.to_owned());
        Self { scenario, rule, plant: None, schedule: schedule.clone() }
    }

    /// Writes the file into a folder, which is created. Returns its path.
    pub(super) fn write(&self, folder: &Path) -> io::Result<PathBuf> {
        let text = self.to_string();
        let name = format!("{} {} {:016x}", self.scenario, self.rule, Fnv1a::new().part(&text).value());
        let name = name.replace(|character: char| !character.is_ascii_alphanumeric(), "-").to_lowercase();
        std::fs::create_dir_all(folder)?;
        let path = folder.join(name).with_extension(ENDING);
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// Runs the schedule. Returns the difference from the expected outcome: with the planted bug it breaks the rule, and
    /// without a bug none.
    pub(super) fn check(&self, scenario: &Scenario) -> Result<(), String> {
        let reference = Reference::of(&perform_planted(scenario, None, &Schedule::default(), Observe::Nothing));
        let with_bug = self.plant.map(|plant| (Some(plant), Some(self.rule.as_str())));
        for (plant, expected) in with_bug.into_iter().chain([(None, None)]) {
            let run = perform_planted(scenario, plant, &self.schedule, Observe::Nothing);
            let Run { violation, history, trace, not_applied, .. } = run;
            if !not_applied.is_empty() {
                return Err(format!("does not apply: perturbations {not_applied:?} of\n{self}"));
            }
            let violation = violation.or_else(|| reference.compare(&self.schedule, &history));
            if violation.as_ref().map(|violation| violation.rule.as_str()) != expected {
                let found = violation.map_or_else(|| "no rule is broken".to_owned(), |violation| violation.to_string());
                return Err(format!("with the bug {plant:?}: {found}\n{self}\ntrace:\n{trace}"));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# scenario {}\n# rule {}", self.scenario, self.rule)?;
        if let Some(plant) = self.plant {
            writeln!(f, "# planted {plant:?}")?;
        }
        self.schedule.fmt(f)
    }
}

impl FromStr for Kept {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let header = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let plant = header("# planted ").map(|name| {
            let named = Plant::ALL.into_iter().find(|plant| format!("{plant:?}") == name);
            named.ok_or_else(|| format!("there is no planted bug {name}"))
        });
        Ok(Self {
            scenario: header("# scenario ").ok_or("no line `# scenario NAME`")?.to_owned(),
            rule: header("# rule ").ok_or("no line `# rule ID`")?.to_owned(),
            plant: plant.transpose()?,
            schedule: text.parse().map_err(|error| format!("{error}"))?,
        })
    }
}

/// Returns the folder of the schedules of a test. `None` if the sources are not there.
pub(super) fn folder_of(test: &Location<'_>) -> Option<PathBuf> {
    // The path in a location begins at the root of the workspace, and a test runs in the folder of its package.
    let here = std::env::current_dir().ok()?;
    let file = here.ancestors().map(|folder| folder.join(test.file())).find(|file| file.is_file())?;
    Some(file.parent()?.join(FOLDER))
}

/// Runs the schedules of a folder that are of a scenario, as [`check`](super::check) does with the folder beside its test.
///
/// A schedule must break no rule. With a line `# planted BUG`, it must break the rule of its line `# rule ID` with that
/// [bug](crate::Plant), and none without it.
///
/// # Errors
/// The first file that cannot be parsed, does not apply, or has another outcome.
pub fn replay_folder(folder: &Path, scenario: &Scenario) -> Result<(), String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == ENDING)) {
        let named = |error: String| format!("{}: {error}", file.display());
        let text = std::fs::read_to_string(file).map_err(|error| named(error.to_string()))?;
        let kept: Kept = text.parse().map_err(named)?;
        if kept.scenario == scenario.name() {
            kept.check(scenario).map_err(named)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# scenario toy
# rule O2
# planted ConflictIsSuccess
toy shop/web write 1: fail before 409
";

    #[test]
    fn the_text_of_a_file_parses_to_the_same() {
        let kept: Kept = TEXT.parse().unwrap();
        assert_eq!((kept.plant, kept.schedule.len()), (Some(Plant::ConflictIsSuccess), 1));
        assert_eq!(kept.to_string(), TEXT);
    }

    #[test]
    fn a_file_without_its_headers_is_refused() {
        for (line, reason) in [("# scenario", "no line `# scenario NAME`"), ("# rule", "no line `# rule ID`")] {
            let without: Vec<&str> = TEXT.lines().filter(|other| !other.starts_with(line)).collect();
            assert_eq!(without.join("\n").parse::<Kept>(), Err(reason.to_owned()));
        }
        let unknown = TEXT.replace("ConflictIsSuccess", "Other");
        assert_eq!(unknown.parse::<Kept>(), Err("there is no planted bug Other".to_owned()));
    }

    #[test]
    fn a_kept_schedule_is_found_beside_the_test() {
        let folder = folder_of(Location::caller()).expect("the sources are there");
        assert!(folder.ends_with("simulation/src/search/schedules"), "{}", folder.display());
    }
}
