//! Places the functions that a running manager executes side by side in the shipped binary
//! (`docs/adr/0012-function-order.md`). The list is written by `cargo xtask layout`.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    let list = PathBuf::from("layout/functions.txt");
    println!("cargo::rerun-if-changed={}", list.display());
    // Only the shipped binary is built with the names that the list holds, and only linkers of ELF read such a script.
    let shipped = env::var_os("CARGO_FEATURE_JEMALLOC").is_some();
    if !shipped || env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    let functions = fs::read_to_string(&list).expect("the list is part of the package");
    // Copies that the compiler makes of a function have a suffix, and functions that it takes for cold a section apart.
    let sections: Vec<String> = functions
        .lines()
        .map(|name| format!("    *(.text.{name} .text.{name}.* .text.unlikely.{name} .text.unlikely.{name}.*)\n"))
        .collect();
    let target = |part| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    // Functions of the same instructions are one: those that are compiled for several types, or in several crates. Rust
    // links with LLD on this target, which can do it. Without a list, the functions are recorded for one.
    if target("ARCH") == "x86_64" && target("ENV") == "gnu" && !sections.is_empty() {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
    // The code that registers controllers before `main` is linked first.
    let script = format!(
        "SECTIONS\n{{\n  .text.executed : {{\n    *(.text.startup .text.startup.*)\n{}  }}\n}}\nINSERT BEFORE .text;\n",
        sections.concat()
    );
    let path = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("functions.ld");
    fs::write(&path, script).expect("cargo made the folder");
    println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", path.display());
    // Relocations as bit maps: their 24 bytes each are read at start, and 0.8 MB of them stay resident otherwise.
    println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
}
