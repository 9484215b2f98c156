mod actual;
mod desired;
mod invariants;
mod names;
mod plan;
mod report;
mod view;
mod volume;
