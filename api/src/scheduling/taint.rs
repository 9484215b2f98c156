//! Taints of nodes.

use crate::intern::InternedStr;

crate::message! {
    /// A taint of a node.
    #[derive(Eq)]
    pub struct Taint {
        /// `key`.
        pub key: InternedStr = "key" @ 1;
        /// `value`.
        pub value: InternedStr = "value" @ 2;
        /// `effect`: `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
        pub effect: InternedStr = "effect" @ 3;
    }
}

impl Taint {
    /// Whether no pod is scheduled that does not tolerate the taint.
    #[must_use]
    pub fn prevents_scheduling(&self) -> bool {
        &*self.effect == "NoSchedule" || self.evicts()
    }

    /// Whether pods that run are evicted if they do not tolerate the taint.
    #[must_use]
    pub fn evicts(&self) -> bool {
        &*self.effect == "NoExecute"
    }
}
