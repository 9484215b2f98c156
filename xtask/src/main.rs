//! The project's commands that are not plain cargo.

fn main() {}
