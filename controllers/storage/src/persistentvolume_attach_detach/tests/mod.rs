mod names;
mod plan;
mod report;
mod volume;
