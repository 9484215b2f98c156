//! The executable parts of a process' address space, as `/proc/PID/maps` lists them. Pure.

use std::ops::Range;

/// A part of the address space that holds code of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) range: Range<u64>,
    /// Offset of its start in the file.
    pub(super) offset: u64,
    pub(super) file: String,
    /// The identity of the file, if it has one, in hexadecimal digits.
    pub(super) build_id: String,
}

/// The executable mappings of files, sorted by address. Other lines are skipped.
pub(super) fn executable(maps: &str) -> Vec<Mapping> {
    let mut mappings: Vec<Mapping> = maps.lines().filter_map(mapping).collect();
    mappings.sort_by_key(|mapping| mapping.range.start);
    mappings
}

/// A line: addresses, permissions, offset, device, inode, file.
fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(5, ' ');
    let (addresses, permissions, offset) = (words.next()?, words.next()?, words.next()?);
    let _device = words.next()?;
    // The file follows the inode and blanks, and may have blanks itself.
    let file = words.next()?.split_once(' ')?.1.trim_start();
    let (start, end) = addresses.split_once('-')?;
    let number = |digits| u64::from_str_radix(digits, 16).ok();
    let is_code = permissions.as_bytes().get(2) == Some(&b'x') && file.starts_with('/');
    let file = file.strip_suffix(" (deleted)").unwrap_or(file);
    let (range, offset) = (number(start)?..number(end)?, number(offset)?);
    is_code.then(|| Mapping { range, offset, file: file.to_owned(), build_id: String::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_files_is_listed_and_nothing_else() {
        let maps = "\
55d0c0a00000-55d0c0b00000 r--p 00000000 08:01 131 /usr/bin/kcm
7f0000001000-7f0000002000 r-xp 00002000 08:01 132                        /lib/a b.so
55d0c0b00000-55d0c0c00000 r-xp 00100000 08:01 131                        /usr/bin/kcm (deleted)
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]
7ffe00000000-7ffe00002000 rwxp 00000000 00:00 0
nonsense";
        let expected = [
            (0x55d0_c0b0_0000..0x55d0_c0c0_0000, 0x10_0000, "/usr/bin/kcm"),
            (0x7f00_0000_1000..0x7f00_0000_2000, 0x2000, "/lib/a b.so"),
        ];
        let found = executable(maps);
        let found: Vec<_> = found.iter().map(|one| (one.range.clone(), one.offset, one.file.as_str())).collect();
        assert_eq!(found, expected);
    }
}
