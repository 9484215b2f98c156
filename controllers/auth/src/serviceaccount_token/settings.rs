//! The settings.

use kcm_framework::config::{Setting, Workers};

use crate::shared::SECTION;

pub(super) const SYNCS: Setting<Workers> =
    SECTION.workers("concurrent-serviceaccount-token-syncs", "ConcurrentSATokenSyncs", "token Secrets", 5);
pub(super) const PRIVATE_KEY_FILE: Setting<String> =
    SECTION.string("service-account-private-key-file", "ServiceAccountKeyFile", "").help(
        "PEM file with the RSA or ECDSA key that signs service account tokens. If empty, token Secrets stay without a token.",
    );
