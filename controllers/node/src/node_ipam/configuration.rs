//! The cluster CIDRs and their blocks, from the settings. Pure.

use super::cidr::{Cidr, width};

/// The cluster CIDRs, each with the prefix length of a block, and the service CIDRs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Clusters {
    pub(super) pods: Vec<(Cidr, u8)>,
    pub(super) services: Vec<Cidr>,
}

/// Prefix lengths of the pod CIDR of a Node, as the settings have them. 0 stands for the default.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MaskSizes {
    pub(super) any: i32,
    pub(super) ipv4: i32,
    pub(super) ipv6: i32,
}

/// Settings from which Nodes cannot get pod CIDRs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ConfigurationError {
    #[error("cannot read --cluster-cidr: {0:?} is no CIDR such as 10.244.0.0/16")]
    NoCidr(String),
    #[error("--cluster-cidr has {0} CIDRs: give one, or one of each IP family")]
    NotAStack(usize),
    #[error("both CIDRs of --service-cluster-ip-range are of one IP family: give one of each")]
    ServicesOfOneFamily,
    #[error("--node-cidr-mask-size does not apply to two IP families: use the flags with -ipv4 and -ipv6")]
    MaskSizeOfBoth,
    #[error("--node-cidr-mask-size cannot be combined with the flags with -ipv4 and -ipv6")]
    TwoMaskSizes,
    #[error("--node-cidr-mask-size-ipv{wrong} does not fit --cluster-cidr, which has no IPv{wrong} CIDR")]
    MaskSizeOfOtherFamily { wrong: u8 },
    #[error("the prefix of a Node, /{length}, is longer than an address of {cluster}: choose a smaller mask size")]
    TooLong { cluster: String, length: i32 },
    #[error("the prefix of a Node, /{length}, is shorter than the prefix of {cluster}: choose a greater mask size")]
    TooShort { cluster: String, length: i32 },
    #[error("{cluster} has more than 65536 blocks with a prefix of /{length}: choose a smaller mask size")]
    TooMany { cluster: String, length: i32 },
}

/// An IPv6 cluster CIDR has at most 2^16 blocks, as upstream.
const MOST_BITS_OF_IPV6: i32 = 16;

impl Clusters {
    /// Reads the settings. Returns the texts of service CIDRs that are none as well: upstream logs these, and allocates
    /// without them.
    pub(super) fn read<'a>(
        clusters: &str,
        sizes: MaskSizes,
        services: impl IntoIterator<Item = &'a str>,
    ) -> Result<(Self, Vec<&'a str>), ConfigurationError> {
        let (services, unreadable) = read_services(services)?;
        Ok((Self { pods: read_pods(clusters, sizes)?, services }, unreadable))
    }
}

fn read_pods(text: &str, sizes: MaskSizes) -> Result<Vec<(Cidr, u8)>, ConfigurationError> {
    let parse = |part: &str| Cidr::parse(part).ok_or_else(|| ConfigurationError::NoCidr(part.to_owned()));
    let clusters = text.trim().split(',').map(parse).collect::<Result<Vec<_>, _>>()?;
    match &clusters[..] {
        [_] => {}
        [one, other] if one.is_ipv6 != other.is_ipv6 => {}
        _ => return Err(ConfigurationError::NotAStack(clusters.len())),
    }
    let is_dual = clusters.len() > 1;
    let has = |is_ipv6: bool| clusters.iter().any(|cluster| cluster.is_ipv6 == is_ipv6);
    if sizes.any != 0 && is_dual {
        return Err(ConfigurationError::MaskSizeOfBoth);
    }
    if sizes.any != 0 && (sizes.ipv4 != 0 || sizes.ipv6 != 0) {
        return Err(ConfigurationError::TwoMaskSizes);
    }
    for (size, wrong, is_ipv6) in [(sizes.ipv4, 4, false), (sizes.ipv6, 6, true)] {
        if size != 0 && !has(is_ipv6) {
            return Err(ConfigurationError::MaskSizeOfOtherFamily { wrong });
        }
    }
    clusters.into_iter().map(|cluster| Ok((cluster, block_length(cluster, sizes)?))).collect()
}

fn block_length(cluster: Cidr, sizes: MaskSizes) -> Result<u8, ConfigurationError> {
    let (of_family, default) = if cluster.is_ipv6 { (sizes.ipv6, 64) } else { (sizes.ipv4, 24) };
    let length = [sizes.any, of_family].into_iter().find(|size| *size != 0).unwrap_or(default);
    let named = || cluster.to_string();
    let prefix = u8::try_from(length).ok().filter(|prefix| *prefix <= width(cluster.is_ipv6));
    if length < i32::from(cluster.length) {
        return Err(ConfigurationError::TooShort { cluster: named(), length });
    }
    let Some(prefix) = prefix else { return Err(ConfigurationError::TooLong { cluster: named(), length }) };
    if cluster.is_ipv6 && length - i32::from(cluster.length) > MOST_BITS_OF_IPV6 {
        return Err(ConfigurationError::TooMany { cluster: named(), length });
    }
    Ok(prefix)
}

fn read_services<'a>(
    texts: impl IntoIterator<Item = &'a str>,
) -> Result<(Vec<Cidr>, Vec<&'a str>), ConfigurationError> {
    let (mut services, mut unreadable) = (Vec::new(), Vec::new());
    for text in texts.into_iter().filter(|text| !text.is_empty()) {
        match Cidr::parse(text) {
            Some(service) => services.push(service),
            None => unreadable.push(text),
        }
    }
    match &services[..] {
        [one, other, ..] if one.is_ipv6 == other.is_ipv6 => Err(ConfigurationError::ServicesOfOneFamily),
        _ => Ok((services, unreadable)),
    }
}
