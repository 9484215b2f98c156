//! Quantities as they are written in settings.

use std::fmt;
use std::str::FromStr;

use kcm_api::{InvalidQuantity, Quantity};

/// A quantity that is printed as it was written, such as `64Ki`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenQuantity {
    text: String,
    amount: Quantity,
}

impl WrittenQuantity {
    /// Returns the quantity as a number.
    #[must_use]
    pub const fn amount(&self) -> &Quantity {
        &self.amount
    }
}

impl fmt::Display for WrittenQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl FromStr for WrittenQuantity {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, InvalidQuantity> {
        Ok(Self { text: text.to_owned(), amount: text.parse()? })
    }
}
