mod apply;
mod plan;
