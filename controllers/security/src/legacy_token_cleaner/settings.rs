//! The settings.

use std::time::Duration;

use jiff::SignedDuration;
use kcm_config::{GoDuration, Initial, Row};
use kcm_framework::{BoxError, ControllerContext};

const CLEAN_UP_PERIOD: &str = "legacy-service-account-token-clean-up-period";

/// As upstream.
pub(super) const INTERVAL: Duration = Duration::from_hours(24);

/// The rows of the settings.
pub(super) const ROWS: &[Row] = &[Row::new(
    CLEAN_UP_PERIOD,
    "Legacy-serviceaccount-token-cleaner-controller",
    Initial::Duration(GoDuration::from_secs(8760 * 60 * 60)),
)
.path("LegacySATokenCleaner.CleanUpPeriod")
.help("How long a token in a secret may be unused before it is deleted.")];

/// A period that no token survives.
#[derive(Debug, thiserror::Error)]
#[error("--{CLEAN_UP_PERIOD} is {0}: give a period above zero")]
pub(super) struct InvalidPeriod(GoDuration);

/// The period after which an unused token is deleted.
///
/// # Errors
/// It is not above zero.
pub(super) fn period(context: &ControllerContext) -> Result<SignedDuration, BoxError> {
    let period: GoDuration = context.setting(CLEAN_UP_PERIOD)?;
    let duration = SignedDuration::try_from(period.unsigned())?;
    if duration.is_zero() { Err(InvalidPeriod(period).into()) } else { Ok(duration) }
}
