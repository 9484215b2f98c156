mod apply;
mod condition;
mod plan;
