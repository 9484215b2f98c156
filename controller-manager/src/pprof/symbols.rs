//! The files whose code a process runs: names of functions, and how to unwind their frames.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;
use std::ops::Range;

use object::{Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _, ReadCache, SymbolKind};

use super::maps::Mapping;
use super::profile::{Function, Profile};

/// The content of a section and its addresses in the file.
pub(super) type Section = (Range<u64>, Vec<u8>);

/// The parts of a file that unwinding needs.
pub(super) struct Code {
    /// Difference between an address in the process and in the file.
    pub(super) bias: u64,
    pub(super) eh_frame: Option<Section>,
    pub(super) eh_frame_hdr: Option<Section>,
    build_id: String,
}

fn cache(pid: u32, mapping: &Mapping) -> Option<ReadCache<BufReader<File>>> {
    // A program that was replaced on disk still runs from its first file.
    let of_program = format!("/proc/{pid}/exe");
    let is_program = std::fs::read_link(&of_program)
        .is_ok_and(|link| link.to_string_lossy().trim_end_matches(" (deleted)") == mapping.file);
    let file = if is_program { of_program } else { mapping.file.clone() };
    File::open(file).ok().map(|file| ReadCache::new(BufReader::new(file)))
}

/// Returns the difference between an address in the process and in the file.
fn bias<'data>(file: &impl object::Object<'data>, mapping: &Mapping) -> Option<u64> {
    file.segments().find_map(|segment| {
        let (offset, size) = segment.file_range();
        // The kernel maps whole pages, so a mapping may begin before its segment.
        let end = offset.saturating_add(size);
        let overlaps =
            mapping.offset < end && mapping.offset.saturating_add(mapping.range.end - mapping.range.start) > offset;
        let executable = matches!(
            segment.flags(),
            object::SegmentFlags::Elf { p_flags } if p_flags & object::elf::PF_X != 0
        );
        let start = mapping.range.start.wrapping_sub(mapping.offset);
        (overlaps && executable).then(|| start.wrapping_add(offset).wrapping_sub(segment.address()))
    })
}

/// Reads the file of a mapping. Returns `None` if that is not possible, such as for a deleted file.
pub(super) fn code(pid: u32, mapping: &Mapping) -> Option<Code> {
    let cache = cache(pid, mapping)?;
    let file = object::File::parse(&cache).ok()?;
    let section = |name: &str| {
        let section = file.section_by_name(name)?;
        let (start, data) = (section.address(), section.data().ok()?.to_vec());
        Some((start..start.saturating_add(data.len() as u64), data))
    };
    let build_id = file.build_id().ok().flatten().unwrap_or_default().iter().fold(String::new(), |mut id, byte| {
        // Writing to a string does not fail.
        let _written = write!(id, "{byte:02x}");
        id
    });
    let bias = bias(&file, mapping)?;
    Some(Code { bias, eh_frame: section(".eh_frame"), eh_frame_hdr: section(".eh_frame_hdr"), build_id })
}

/// Names the functions of a profile, and the identities of its files. Files without symbols leave their addresses without
/// names, for tools to name them from a copy of the file that has symbols.
pub(super) fn resolve(pid: u32, profile: &mut Profile) {
    let addresses: Vec<u64> = profile.addresses().collect();
    let mut functions = BTreeMap::new();
    for mapping in &mut profile.mappings {
        let wanted: BTreeSet<u64> =
            addresses.iter().copied().filter(|address| mapping.range.contains(address)).collect();
        if wanted.is_empty() {
            continue;
        }
        if let Some(code) = code(pid, mapping) {
            mapping.build_id = code.build_id;
        }
        if let Some(named) = names(pid, mapping, &wanted) {
            functions.extend(named);
        }
    }
    profile.functions = functions;
}

/// The functions that hold the addresses.
fn names(pid: u32, mapping: &Mapping, wanted: &BTreeSet<u64>) -> Option<BTreeMap<u64, Function>> {
    let cache = cache(pid, mapping)?;
    let file = object::File::parse(&cache).ok()?;
    let bias = bias(&file, mapping)?;
    let mut found = BTreeMap::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        if symbol.kind() != SymbolKind::Text || symbol.size() == 0 {
            continue;
        }
        let start = symbol.address().wrapping_add(bias);
        for address in wanted.range(start..start.saturating_add(symbol.size())) {
            let Ok(name) = symbol.name() else { continue };
            let readable = format!("{:#}", rustc_demangle::demangle(name));
            found.entry(*address).or_insert_with(|| Function { name: readable, symbol: name.to_owned() });
        }
    }
    Some(found)
}
