mod claim;
mod fixtures;
mod observe;
mod plan;
mod rank;
mod status;
mod event_mapping;
mod explain;
