mod apply;
mod cluster;
mod invariants;
mod simulation;
