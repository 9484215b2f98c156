mod claim;
mod event_mapping;
mod explain;
mod fixtures;
mod observe;
mod plan;
mod rank;
mod status;
