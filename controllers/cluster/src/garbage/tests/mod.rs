mod absent;
mod apply;
mod dump;
mod fixtures;
mod graph;
mod model;
mod monitors;
mod plan;
