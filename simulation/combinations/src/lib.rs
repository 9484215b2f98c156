//! Scenarios of the simulation in which controllers of several areas meet. The rules of one controller are in its folder.

#[cfg(test)]
mod tests;
