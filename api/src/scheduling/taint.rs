//! Taints of nodes and their effects.

use jiff::Timestamp;

use crate::intern::InternedStr;

crate::message! {
    /// A taint of a node.
    #[derive(Eq)]
    pub struct Taint {
        /// `key`, empty if it is absent.
        pub key: InternedStr = "key" @ 1;
        /// `value`, empty if it is absent.
        pub value: InternedStr = "value" @ 2;
        /// `effect`: `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
        pub effect: InternedStr = "effect" @ 3;
        /// `timeAdded`, which the node lifecycle controller sets on its taints.
        pub time_added: Option<Timestamp> = "timeAdded" @ 4;
    }
}

impl Taint {
    /// Returns `true` if the taint keeps pods that do not tolerate it from being scheduled.
    #[must_use]
    pub fn prevents_scheduling(&self) -> bool {
        &*self.effect == "NoSchedule" || self.evicts()
    }

    /// Returns `true` if running pods that do not tolerate the taint are evicted.
    #[must_use]
    pub fn evicts(&self) -> bool {
        &*self.effect == "NoExecute"
    }
}
