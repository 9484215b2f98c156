//! The operator in the simulation.

mod mistakes;
mod simulation;
