//! Registers each script of the folder `scripts`: a new one needs nothing but its file.

#![allow(clippy::print_stdout, reason = "cargo reads it")]

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let package = env::var_os("CARGO_MANIFEST_DIR").ok_or_else(|| io::Error::other("cargo sets CARGO_MANIFEST_DIR"))?;
    let folder = Path::new(&package).join("scripts");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = fs::read_dir(&folder)?.map(|file| Ok(file?.path())).collect::<io::Result<Vec<_>>>()?;
    files.sort();
    let mut text = String::new();
    for file in files {
        let name = file.file_stem().unwrap_or_default().display().to_string();
        let file = file.display().to_string();
        writeln!(text, "kcm_e2e_harness::script!({name:?}, {file:?});").map_err(io::Error::other)?;
    }
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    fs::write(Path::new(&out).join("scripts.rs"), text)
}
