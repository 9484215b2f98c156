//! Typed settings: a constant that is the row of a setting and the way to read it.

use std::marker::PhantomData;

use crate::checks;
use crate::duration::GoDuration;
use crate::row::{Check, Initial, Row};

/// The settings of one component: the heading in `--help`, and the section of the configuration file.
///
/// ```
/// use kcm_config::{GoDuration, Section, Setting, Workers};
///
/// const SECTION: Section = Section::new("Greeter", "GreeterController");
/// const SYNCS: Setting<Workers> = SECTION.workers("concurrent-greeter-syncs", "ConcurrentGreeterSyncs", "Greetings", 5);
/// const PERIOD: Setting<GoDuration> = SECTION
///     .duration("greeter-period", "GreeterPeriod", GoDuration::from_secs(30))
///     .help("Interval between two greetings.");
///
/// assert_eq!(SYNCS.row().path.unwrap().to_string(), "GreeterController.ConcurrentGreeterSyncs");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Section {
    help: &'static str,
    file: &'static str,
}

/// A setting with values of type `T`: its [`Row`], and the key for reading it.
///
/// The row becomes a flag by being listed in the settings of a controller's descriptor.
#[derive(Debug)]
#[must_use]
pub struct Setting<T> {
    row: Row,
    value: PhantomData<fn() -> T>,
}

/// Type of a number of workers: a whole number of at least 1, applied while the program runs.
#[derive(Debug, Clone, Copy)]
pub enum Workers {}

impl Section {
    /// A section, by its heading in `--help` (without the word "flags") and its key in the configuration file.
    #[must_use]
    pub const fn new(help: &'static str, file: &'static str) -> Self {
        Self { help, file }
    }

    const fn setting<T>(&self, flag: &'static str, key: &'static str, initial: Initial) -> Setting<T> {
        Setting { row: Row::new(flag, self.help, initial).path_in(self.file, key), value: PhantomData }
    }

    /// The number of concurrent reconciles of `objects`, a plural noun. Its help is the same sentence for all
    /// controllers.
    pub const fn workers(
        &self,
        flag: &'static str,
        key: &'static str,
        objects: &'static str,
        default: i32,
    ) -> Setting<Workers> {
        let Setting { row, value } = self.setting(flag, key, Initial::Int32(default));
        Setting { row: row.workers_help(objects).check(checks::positive).reloaded(), value }
    }

    /// Declares a setting that is a boolean.
    pub const fn bool(&self, flag: &'static str, key: &'static str, default: bool) -> Setting<bool> {
        self.setting(flag, key, Initial::Bool(default))
    }

    /// Declares a setting that is a whole number.
    pub const fn int32(&self, flag: &'static str, key: &'static str, default: i32) -> Setting<i32> {
        self.setting(flag, key, Initial::Int32(default))
    }

    /// A number with a fraction, in single precision.
    pub const fn float32(&self, flag: &'static str, key: &'static str, default: f32) -> Setting<f32> {
        self.setting(flag, key, Initial::Float32(default))
    }

    /// A number with a fraction.
    pub const fn float64(&self, flag: &'static str, key: &'static str, default: f64) -> Setting<f64> {
        self.setting(flag, key, Initial::Float64(default))
    }

    /// A duration in Go's notation, such as `1h30m`.
    pub const fn duration(&self, flag: &'static str, key: &'static str, default: GoDuration) -> Setting<GoDuration> {
        self.setting(flag, key, Initial::Duration(default))
    }

    /// Declares a setting that is a string.
    pub const fn string(&self, flag: &'static str, key: &'static str, default: &'static str) -> Setting<String> {
        self.setting(flag, key, Initial::String(default))
    }

    /// A list of texts.
    pub const fn strings(
        &self,
        flag: &'static str,
        key: &'static str,
        default: &'static [&'static str],
    ) -> Setting<Vec<String>> {
        self.setting(flag, key, Initial::Strings(default))
    }

    /// Declares a setting that is a string and that only a file can set, by its whole path.
    pub const fn file_string(&self, path: &'static str, default: &'static str) -> Setting<String> {
        Setting { row: Row::in_file(path, self.help, Initial::String(default)), value: PhantomData }
    }

    /// Declares a list of objects that only a file can set, by its whole path. `fields` are the keys of an object,
    /// `items` the values in each object of the default.
    pub const fn objects<T>(
        &self,
        path: &'static str,
        fields: &'static [&'static str],
        items: &'static [&'static [&'static str]],
    ) -> Setting<Vec<T>> {
        Setting { row: Row::in_file(path, self.help, Initial::Objects { fields, items }), value: PhantomData }
    }
}

impl<T> Setting<T> {
    /// Sets the help of the flag.
    pub const fn help(self, help: &'static str) -> Self {
        Self { row: self.row.help(help), value: self.value }
    }

    /// Sets the validation of values beyond their type.
    pub const fn check(self, check: Check) -> Self {
        Self { row: self.row.check(check), value: self.value }
    }

    /// The row, for the settings of a descriptor.
    #[must_use]
    pub const fn row(&self) -> Row {
        self.row
    }

    /// Returns the flag, without dashes, or the path if only a file can set it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.row.name
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::{AccessError, Loaded, Sources, Table};

    const SECTION: Section = Section::new("Greeter", "GreeterController");
    const SYNCS: Setting<Workers> = SECTION.workers("greeter-syncs", "Syncs", "Greetings", 5);
    const PERIOD: Setting<GoDuration> =
        SECTION.duration("greeter-period", "Period", GoDuration::from_secs(30)).help("Interval of greetings.");
    const NAME: Setting<String> = SECTION.string("greeter-name", "Name", "world").help("Whom to greet.");
    const IGNORED: Setting<Vec<Ignored>> =
        SECTION.objects("GreeterController.Ignored", &["Group", "Name"], &[&["", "nobody"]]).help("Whom not to greet.");

    #[derive(Debug, PartialEq, Eq, Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Ignored {
        group: String,
        name: String,
    }

    fn load(arguments: &[&str]) -> Box<crate::Effective> {
        let table = Table::new([SYNCS.row(), PERIOD.row(), NAME.row(), IGNORED.row()]).unwrap();
        let Loaded::Settings(settings) = table.load(&Sources::default().arguments(arguments.iter().copied())).unwrap()
        else {
            panic!("neither help nor version was given")
        };
        settings
    }

    #[test]
    fn a_setting_is_read_with_its_type() {
        let settings = load(&["--greeter-period=1m", "--greeter-syncs=7"]);
        assert_eq!(settings.read(&PERIOD).unwrap(), GoDuration::from_secs(60));
        assert_eq!(settings.read(&NAME).unwrap(), "world");
        let ignored = Ignored { group: String::new(), name: "nobody".to_owned() };
        assert_eq!(settings.read(&IGNORED).unwrap(), [ignored]);
        assert_eq!(settings.get::<i32>(SYNCS.name()).unwrap(), 7);
    }

    #[test]
    fn a_setting_that_no_row_declares_is_an_error_that_names_its_flag() {
        const OTHER: Setting<bool> = SECTION.bool("greeter-other", "Other", true).help("Nothing.");
        let error = load(&[]).read(&OTHER).unwrap_err();
        assert!(matches!(error, AccessError::UnknownFlag { .. }));
        assert!(error.to_string().contains("--greeter-other"), "{error}");
    }

    #[test]
    fn a_number_of_workers_is_positive_and_reloaded_and_its_help_names_the_objects() {
        let row = SYNCS.row();
        assert!(row.is_reloaded);
        assert!(row.check.unwrap()(&crate::Value::Int32(0)).is_err());
        let help = row.help.to_string();
        assert!(help.starts_with("Number of Greetings that are reconciled at the same time."), "{help}");
    }
}
