mod actual;
mod desired;
mod invariants;
mod names;
mod plan;
mod report;
mod volume;
