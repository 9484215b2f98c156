mod claim;
mod fixtures;
mod observe;
mod plan;
mod rank;
mod status;
mod wiring;
mod words;
