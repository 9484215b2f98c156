//! The time zone of the machine.

use std::path::Path;

use jiff::tz::TimeZone;

/// Folders in which systems keep the files of time zones.
const FOLDERS: [&str; 4] = ["/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo"];

/// Returns the time zone of the variable `TZ`, or of the machine if it is not set. Returns UTC if the zone is not
/// known.
pub(super) fn of_machine() -> TimeZone {
    zone(std::env::var("TZ").ok().as_deref(), |path| std::fs::read(path).ok())
}

/// # Upstream
/// `initLocal` in Go's package `time`: without the variable, `/etc/localtime` has the zone. An empty variable is UTC,
/// any other value names a file or a zone.
fn zone(variable: Option<&str>, read: impl Fn(&Path) -> Option<Vec<u8>>) -> TimeZone {
    let load = |path: &Path| TimeZone::tzif("Local", &read(path)?).ok();
    let found = match variable.map(|name| name.strip_prefix(':').unwrap_or(name)) {
        None => load(Path::new("/etc/localtime")),
        Some("" | "UTC") => None,
        Some(path) if path.starts_with('/') => load(Path::new(path)),
        Some(name) => FOLDERS.iter().find_map(|folder| load(&Path::new(folder).join(name))),
    };
    found.unwrap_or(TimeZone::UTC)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    /// A file of a zone that is always five hours behind UTC.
    fn five_behind() -> Vec<u8> {
        let mut file = Vec::new();
        for version in [b'2', b'2'] {
            file.extend_from_slice(b"TZif");
            file.push(version);
            file.extend_from_slice(&[0; 15]);
            // No leap seconds, transitions or indicators; one type, whose name has four bytes.
            for count in [0_u32, 0, 0, 0, 1, 4] {
                file.extend_from_slice(&count.to_be_bytes());
            }
            file.extend_from_slice(&(-18_000_i32).to_be_bytes());
            file.extend_from_slice(&[0, 0]);
            file.extend_from_slice(b"EST\0");
        }
        file.extend_from_slice(b"\nEST5\n");
        file
    }

    #[test]
    fn the_zone_is_that_of_the_variable_or_of_the_machine_and_otherwise_utc() {
        let cases = [
            (None, "/etc/localtime", -5),
            (None, "/nowhere", 0),
            (Some(""), "/etc/localtime", 0),
            (Some("UTC"), "/etc/localtime", 0),
            (Some("America/Panama"), "/usr/share/zoneinfo/America/Panama", -5),
            (Some(":America/Panama"), "/etc/zoneinfo/America/Panama", -5),
            (Some("/tmp/zone"), "/tmp/zone", -5),
            (Some("Nowhere"), "/etc/localtime", 0),
        ];
        for (variable, file, hours) in cases {
            let zone = zone(variable, |path| (path == Path::new(file)).then(five_behind));
            assert_eq!(zone.to_offset(Timestamp::UNIX_EPOCH).seconds(), hours * 3600, "{variable:?}, {file}");
        }
        let broken = zone(None, |_| Some(b"TZif2 and nothing else".to_vec()));
        assert_eq!(broken, TimeZone::UTC);
    }
}
