//! Expected results of upstream's integration tests, and the results of a run.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed,
    Skipped,
}

/// The expected result of a test that judges another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    Passes,
    /// It fails for upstream's own binary too.
    CannotJudge,
    /// It fails until a controller that it needs is here.
    NotYet,
    /// It passes, and proves nothing: it starts no controller.
    WithoutController,
}

/// The rows of one package, by the name of the test, or of a subtest as `TestA/case`.
pub(crate) struct Table {
    rows: BTreeMap<String, Expected>,
}

impl Table {
    /// Reads the rows of a package: package, test, expected, reason.
    pub(crate) fn read(rows: &str, package: &str) -> Result<Self> {
        let mut by_test = BTreeMap::new();
        for line in rows.lines().skip(1) {
            let [row_package, test, expected, reason] =
                line.split('\t').collect::<Vec<_>>().try_into().ok().with_context(|| format!("{line:?} is no row"))?;
            let expected = match expected {
                "passes" => Expected::Passes,
                "cannot judge" => Expected::CannotJudge,
                "not yet" => Expected::NotYet,
                "without controller" => Expected::WithoutController,
                other => {
                    anyhow::bail!(
                        "{other:?} is not one of `passes`, `cannot judge`, `not yet` and `without controller`"
                    )
                }
            };
            ensure!((expected == Expected::Passes) == reason.is_empty(), "{test}: what does not pass has a reason");
            if row_package == package {
                ensure!(by_test.insert(test.to_owned(), expected).is_none(), "{test} has two rows");
            }
        }
        Ok(Self { rows: by_test })
    }

    /// Leaves out what is expected not to pass, and returns the names.
    pub(crate) fn take_failing(&mut self) -> Vec<String> {
        self.rows.extract_if(.., |_, row| *row != Expected::Passes).map(|(test, _)| test).collect()
    }

    /// Returns the number of tests that are expected to pass, and of all tests that start a controller.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let starts_one = |expected: &&Expected| **expected != Expected::WithoutController;
        let passing = self.rows.values().filter(|expected| **expected == Expected::Passes).count();
        (passing, self.rows.values().filter(starts_one).count())
    }

    fn has_subtests(&self, test: &str) -> bool {
        self.rows.keys().any(|row| row.strip_prefix(test).is_some_and(|rest| rest.starts_with('/')))
    }

    /// Returns the differences of a run; a run of some tests alone need not have the others.
    pub(crate) fn differences(
        &self,
        results: &BTreeMap<String, Outcome>,
        is_whole: bool,
        is_peer: bool,
    ) -> Vec<String> {
        let mut differences = Vec::new();
        // A test with a row for each of its subtests is judged by these, and a subtest without a row by its test.
        let is_judged = |test: &str| match test.split_once('/') {
            None => !self.has_subtests(test),
            Some((whole, _)) => self.has_subtests(whole),
        };
        for (test, outcome) in results.iter().filter(|(test, _)| is_judged(test)) {
            let expected = self.rows.get(test).copied();
            let should_pass = match expected {
                None => {
                    differences.push(format!("{test} has no row ({outcome:?})"));
                    continue;
                }
                Some(Expected::Passes | Expected::WithoutController) => true,
                Some(Expected::CannotJudge) => false,
                // Upstream's binary has every controller.
                Some(Expected::NotYet) => is_peer,
            };
            match outcome {
                Outcome::Passed if !should_pass => differences.push(format!("{test} passed unexpectedly")),
                Outcome::Failed if should_pass => differences.push(format!("{test} failed")),
                Outcome::Skipped if should_pass => differences.push(format!("{test} was skipped")),
                Outcome::Passed | Outcome::Failed | Outcome::Skipped => {}
            }
        }
        if is_whole {
            let missing = self.rows.keys().filter(|test| !results.contains_key(*test));
            differences.extend(missing.map(|test| format!("{test} did not run")));
        }
        differences
    }
}

/// The results of tests and of their subtests in the output of `-test.v`.
pub(crate) fn results(output: &str) -> BTreeMap<String, Outcome> {
    let mut results = BTreeMap::new();
    for line in output.lines() {
        let outcomes =
            [("--- PASS: ", Outcome::Passed), ("--- FAIL: ", Outcome::Failed), ("--- SKIP: ", Outcome::Skipped)];
        for (prefix, outcome) in outcomes {
            if let Some(test) =
                line.trim_start_matches(' ').strip_prefix(prefix).and_then(|rest| rest.split(' ').next())
            {
                results.insert(test.to_owned(), outcome);
            }
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use super::{Table, results};

    const TABLE: &str = "package\ttest\texpected\treason\n\
                         a\tTestGood\tpasses\t\na\tTestGate\tcannot judge\tsets a gate\na\tTestPdb\tnot yet\tdisruption\n\
                         b\tTestOther\tpasses\t\n";

    fn differences(output: &str, is_whole: bool, is_peer: bool) -> Vec<String> {
        Table::read(TABLE, "a").expect("it is a table").differences(&results(output), is_whole, is_peer)
    }

    #[test]
    fn subtests_count_if_they_have_rows() {
        let output =
            "=== RUN TestA\n    --- FAIL: TestA/x (0.1s)\n    --- PASS: TestA/y (0.1s)\n--- FAIL: TestA (0.10s)\n";
        let found: Vec<_> = results(output).into_iter().map(|(test, outcome)| format!("{test} {outcome:?}")).collect();
        assert_eq!(found, ["TestA Failed", "TestA/x Failed", "TestA/y Passed"]);
        let differences = |rows: &str| {
            let table = format!("package\ttest\texpected\treason\n{rows}");
            Table::read(&table, "a").expect("it is a table").differences(&results(output), true, false)
        };
        assert_eq!(differences("a\tTestA\tpasses\t\n"), ["TestA failed"]);
        let judged = "a\tTestA/x\tcannot judge\tsets a gate\na\tTestA/y\tpasses\t\n";
        assert_eq!(differences(judged), Vec::<String>::new());
        assert_eq!(differences("a\tTestA/y\tpasses\t\n"), ["TestA/x has no row (Failed)"]);
    }

    #[test]
    fn a_run_as_expected_has_no_differences() {
        let output = "--- PASS: TestGood (1s)\n--- FAIL: TestGate (1s)\n--- FAIL: TestPdb (1s)\n";
        assert_eq!(differences(output, true, false), Vec::<String>::new());
    }

    #[test]
    fn failures_passes_and_tests_that_are_not_expected_are_differences() {
        let output = "--- FAIL: TestGood (1s)\n--- PASS: TestGate (1s)\n--- PASS: TestNew (1s)\n";
        let found =
            ["TestGate passed unexpectedly", "TestGood failed", "TestNew has no row (Passed)", "TestPdb did not run"];
        assert_eq!(differences(output, true, false), found);
        assert_eq!(differences(output, false, false), found[..3]);
    }

    #[test]
    fn upstreams_binary_must_pass_what_waits_for_a_controller_of_ours() {
        let output = "--- PASS: TestGood (1s)\n--- FAIL: TestGate (1s)\n--- PASS: TestPdb (1s)\n";
        assert_eq!(differences(output, true, true), Vec::<String>::new());
    }

    #[test]
    fn tests_that_are_expected_to_fail_can_be_left_out() {
        let mut table = Table::read(TABLE, "a").expect("it is a table");
        assert_eq!(table.take_failing(), ["TestGate", "TestPdb"]);
        assert_eq!(table.counts(), (1, 1));
    }

    #[test]
    fn a_package_without_rows_has_none() {
        assert_eq!(Table::read(TABLE, "c").expect("it is a table").counts(), (0, 0));
        assert_eq!(Table::read(TABLE, "a").expect("it is a table").counts(), (1, 3));
    }
}
