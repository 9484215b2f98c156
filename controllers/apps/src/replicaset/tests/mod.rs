mod apply;
mod cluster;
