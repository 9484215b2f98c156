mod batch;
mod claim;
mod fixtures;
mod plan;
mod rank;
mod status;
mod wiring;
