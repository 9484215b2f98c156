//! Seeded mutations of inputs: what `cargo test` runs of the fuzz targets, without coverage and without a nightly compiler.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Bytes that end, begin or escape something in the formats of the API.
const SPECIAL: &[u8] = b"\0\x01\x0a\x12\x1a\x22\x7f\x80\x84\xff\"\\{}[],:%=!()\n ";

/// A sequence of random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not zero.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).expect("it fits")).expect("it is below a usize")
    }
}

/// Calls `check` with each input in `folders`, and with `rounds` mutations of them. An input that makes it panic is printed.
/// `cargo xtask fuzz` starts with the same folders, which are paths within the crate.
pub(crate) fn mutate(folders: &[&str], rounds: usize, check: impl Fn(&[u8])) {
    let seeds = inputs(folders);
    let mut random = Random(1);
    let run = |input: &[u8]| {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(input))) {
            let reason = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            panic!("{} with the input b\"{}\"", reason.unwrap_or_default(), input.escape_ascii());
        }
    };
    for seed in &seeds {
        run(seed);
    }
    for _ in 0..rounds {
        let mut input = seeds[random.below(seeds.len())].clone();
        for _ in 0..=random.below(4) {
            change(&mut input, &seeds, &mut random);
        }
        run(&input);
    }
}

/// Reads the files in `folders`, in the order of their names, so that each run has the same mutations.
fn inputs(folders: &[&str]) -> Vec<Vec<u8>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in folders {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let found = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        files.extend(found.map(|entry| entry.expect("a folder is listed").path()));
    }
    files.sort();
    assert!(!files.is_empty(), "{folders:?} have no inputs");
    files.iter().map(|file| fs::read(file).expect("an input is a file")).collect()
}

fn change(input: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let at = random.below(input.len() + 1);
    let end = (at + random.below(16)).min(input.len());
    match random.below(7) {
        0 => drop(input.drain(at..end)),
        1 => input.truncate(at),
        2 => {
            let repeated = input[at..end].to_vec();
            input.splice(at..at, repeated);
        }
        3 => input.insert(at, SPECIAL[random.below(SPECIAL.len())]),
        4 => {
            let other = &seeds[random.below(seeds.len())];
            let from = random.below(other.len() + 1);
            let part = &other[from..(from + random.below(64)).min(other.len())];
            input.splice(at..end, part.iter().copied());
        }
        5 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        _special => {
            if let Some(byte) = input.get_mut(at) {
                *byte = SPECIAL[random.below(SPECIAL.len())];
            }
        }
    }
}
