//! Volume handles that need more than a copy.

use std::collections::BTreeSet;

use super::TranslationError;

/// Part of a handle of a GCE disk that the node or the driver fills in.
const UNSPECIFIED: &str = "UNSPECIFIED";

/// Returns the EBS volume id of `id`, which is an id or an `aws://ZONE/ID` URL.
///
/// # Upstream
/// `KubernetesVolumeIDToEBSVolumeID`. An id without the scheme is not checked.
pub(super) fn ebs(id: &str) -> Result<String, TranslationError> {
    let Some(rest) = id.strip_prefix("aws://") else { return Ok(id.to_owned()) };
    let decoded = path_of(rest).ok_or_else(|| TranslationError::EbsUrl { id: id.to_owned() })?;
    let volume = decoded.trim_matches('/');
    if volume.starts_with("vol-") && !volume.contains('/') && !volume.contains('\n') {
        Ok(volume.to_owned())
    } else {
        Err(TranslationError::EbsFormat { id: id.to_owned() })
    }
}

/// Returns the path of a URL after its `//`, decoded, or `None` if an escape is invalid.
fn path_of(rest: &str) -> Option<String> {
    if rest.bytes().any(|byte| byte.is_ascii_control()) {
        return None;
    }
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let path = rest[..end].find('/').map_or("", |start| &rest[start..end]);
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next()?, bytes.next()?];
            let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
            decoded.push(u8::try_from(high? * 16 + low?).ok()?);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).ok()
}

/// Returns the handle of a GCE disk. `zones` is the label of its volume, with several zones joined by `__`.
pub(super) fn gce_disk(disk: &str, zones: &str) -> Result<String, TranslationError> {
    let location = if zones.is_empty() {
        format!("zones/{UNSPECIFIED}")
    } else if zones.contains("__") {
        format!("regions/{}", gce_region(zones.split("__"))?)
    } else {
        format!("zones/{zones}")
    };
    Ok(format!("projects/{UNSPECIFIED}/{location}/disks/{disk}"))
}

fn gce_region<'a>(zones: impl Iterator<Item = &'a str>) -> Result<String, TranslationError> {
    let mut regions = BTreeSet::new();
    for zone in zones {
        let parts: Vec<_> = zone.split('-').collect();
        let [locale, region, _] = parts[..] else { return Err(TranslationError::Zone { zone: zone.to_owned() }) };
        regions.insert(format!("{locale}-{region}"));
    }
    if regions.len() > 1 {
        let regions: Vec<_> = regions.iter().map(|region| format!("{region}:{{}}")).collect();
        return Err(TranslationError::Regions { regions: regions.join(" ") });
    }
    Ok(regions.into_iter().next().unwrap_or_default())
}

/// Returns the account of an Azure file share, which the name of its secret contains.
///
/// # Upstream
/// `azure-storage-account-(.+)-secret`, not anchored and greedy. A secret with another name counts as the account.
pub(super) fn azure_account(secret: &str) -> &str {
    const PREFIX: &str = "azure-storage-account-";
    secret
        .find(PREFIX)
        .map(|start| &secret[start + PREFIX.len()..])
        .and_then(|rest| rest.rfind("-secret").map(|end| &rest[..end]))
        .filter(|account| !account.is_empty())
        .unwrap_or(secret)
}
