mod apply;
mod cluster;
mod invariants;
