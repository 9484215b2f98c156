mod allocator;
mod apply;
mod blocks;
mod configuration;
mod invariants;
mod simulation;
mod state;

use super::cidr::Cidr;

fn cidr(text: &str) -> Cidr {
    Cidr::parse(text).expect("the case must be a CIDR")
}
