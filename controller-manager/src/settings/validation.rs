//! Checks that no row can do alone: settings that do not go together.
//!
//! # Upstream
//! The `Validate` functions of `cmd/kube-controller-manager/app/options`, and the checks of its leader election and of
//! its node IPAM controller at their start.

use std::net::IpAddr;

use kcm_config::{Effective, FromValue, GoDuration, Origin, gates};

/// Smallest ratio of the deadline of a renewal to `--leader-elect-retry-period`, in tenths.
///
/// # Upstream
/// `JitterFactor` of client-go's leader election.
const JITTER_TENTHS: i64 = 12;

/// Returns every reason why the settings do not go together, with the origin of the wrong setting.
///
/// `is_enabled` returns `true` if `--controllers` enables a controller, linked or not.
pub(crate) fn violations(settings: &Effective, is_enabled: impl Fn(&str) -> bool) -> Vec<String> {
    let mut check = Check { settings, reasons: Vec::new() };
    check.leader_election();
    check.gates();
    check.signing_files();
    if check.is_on("allocate-node-cidrs") && is_enabled("node-ipam-controller") {
        check.node_ranges();
    }
    check.pair("tls-cert-file", "tls-private-key-file");
    check.metrics();
    check.request_headers();
    check.reasons
}

struct Check<'a> {
    settings: &'a Effective,
    reasons: Vec<String>,
}

impl Check<'_> {
    fn leader_election(&mut self) {
        if !self.is_on("leader-elect") {
            return;
        }
        if self.text("leader-elect-resource-lock") != "leases" {
            self.refuse("leader-elect-resource-lock", "must be leases");
        }
        for flag in ["leader-elect-resource-name", "leader-elect-resource-namespace"] {
            if self.text(flag).is_empty() {
                self.refuse(flag, "must not be empty");
            }
        }
        if self.settings.enabled(&gates::COORDINATED_LEADER_ELECTION) {
            let origin = self.settings.origin("feature-gates").unwrap_or(&Origin::Default);
            self.reasons.push(format!(
                "{origin}: the API server cannot choose the leader among processes of this program: \
                 leave the feature gate CoordinatedLeaderElection off"
            ));
        }
        let [lease, renew, retry] =
            ["leader-elect-lease-duration", "leader-elect-renew-deadline", "leader-elect-retry-period"];
        let values = [lease, renew, retry].map(|flag| self.get::<GoDuration>(flag).unwrap_or(GoDuration::ZERO));
        for (flag, value) in [lease, renew, retry].into_iter().zip(values) {
            if value <= GoDuration::ZERO {
                self.refuse(flag, "must be greater than zero");
            }
        }
        let [lease_duration, renew_deadline, retry_period] = values;
        if lease_duration.as_nanos() % 1_000_000_000 != 0 {
            self.refuse(lease, "must be whole seconds, as a lease holds them");
        }
        if lease_duration <= renew_deadline {
            self.refuse(lease, &format!("must be greater than --{renew}, which is {renew_deadline}"));
        }
        if renew_deadline.as_nanos() <= (retry_period.as_nanos() / 10).saturating_mul(JITTER_TENTHS) {
            self.refuse(renew, &format!("must be greater than 1.2 times --{retry}, which is {retry_period}"));
        }
    }

    fn gates(&mut self) {
        if self.settings.enabled(&gates::WORKLOAD_WITH_JOB) {
            let origin = self.settings.origin("feature-gates").unwrap_or(&Origin::Default);
            self.reasons.push(format!(
                "{origin}: this program makes no workloads and pod groups for jobs: leave the feature gate \
                 WorkloadWithJob off"
            ));
        }
        // Locked since 1.35: only when 1.34 is emulated can it be turned off.
        let gate = gates::JOB_MANAGED_BY;
        if !self.settings.enabled(&gate) {
            let origin = self.settings.origin("feature-gates").unwrap_or(&Origin::Default);
            self.reasons.push(format!(
                "{origin}: this program honours {gate} in every emulated version: leave the feature gate on",
                gate = gate.name
            ));
        }
    }

    fn signing_files(&mut self) {
        const SIGNERS: [&str; 4] = ["kubelet-serving", "kubelet-client", "kube-apiserver-client", "legacy-unknown"];
        let mut of_signers = Vec::new();
        for signer in SIGNERS {
            let files = ["cert", "key"].map(|file| format!("cluster-signing-{signer}-{file}-file"));
            self.pair(&files[0], &files[1]);
            of_signers.extend(files.into_iter().filter(|flag| self.is_given(flag)));
        }
        let of_all = ["cluster-signing-cert-file", "cluster-signing-key-file"];
        let of_all = of_all.into_iter().find(|flag| self.is_given(flag));
        if let (Some(of_all), Some(of_signer)) = (of_all, of_signers.first()) {
            self.refuse(of_all, &format!("applies to every signer and cannot be combined with --{of_signer}"));
        }
    }

    /// The ranges of pods and services, and the sizes of the ranges of nodes.
    fn node_ranges(&mut self) {
        let services = self.text("service-cluster-ip-range");
        // Upstream only logs ranges of services that it cannot read.
        if read_ranges(&services).is_some_and(|ranges| !is_stack(&ranges)) {
            self.refuse("service-cluster-ip-range", "must be one range, or one of each IP family");
        }
        let Some(pods) = self.pod_ranges() else { return };
        let size = |flag: &str| self.get::<i32>(flag).unwrap_or(0);
        let sizes = ["node-cidr-mask-size", "node-cidr-mask-size-ipv4", "node-cidr-mask-size-ipv6"];
        let [any, v4, v6] = sizes.map(|flag| size(flag) != 0);
        let is_dual = pods.len() > 1;
        let is_v6 = pods.first().is_some_and(|pods| pods.address.is_ipv6());
        if is_dual && any {
            self.refuse(
                sizes[0],
                "is for single-stack clusters: use --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6",
            );
        } else if any && (v4 || v6) {
            self.refuse(sizes[0], "cannot be combined with --node-cidr-mask-size-ipv4 or --node-cidr-mask-size-ipv6");
        } else if !is_dual && v4 && is_v6 {
            self.refuse(sizes[1], "is for clusters with IPv4, but --cluster-cidr is IPv6");
        } else if !is_dual && v6 && !is_v6 {
            self.refuse(sizes[2], "is for clusters with IPv6, but --cluster-cidr is IPv4");
        } else {
            for pods in pods {
                let of_family = if pods.address.is_ipv6() { sizes[2] } else { sizes[1] };
                let size = self.get(if any { sizes[0] } else { of_family }).unwrap_or(0);
                self.blocks(pods, size);
            }
        }
    }

    /// Checks that a CIDR of the cluster can be cut into CIDRs of nodes.
    fn blocks(&mut self, pods: Range, size: i32) {
        const MOST_BITS_OF_IPV6: i32 = 16;
        let (default, width) = if pods.address.is_ipv6() { (64, 128) } else { (24, 32) };
        let size = if size == 0 { default } else { size };
        let Range { address, length } = pods;
        let reason = if size > width {
            format!("has {address}/{length}, whose addresses are shorter than /{size}, the CIDR of a node")
        } else if size < i32::from(length) {
            format!("has {address}/{length}, which is smaller than /{size}, the CIDR of a node")
        } else if address.is_ipv6() && size - i32::from(length) > MOST_BITS_OF_IPV6 {
            format!("has {address}/{length}, which has more than 65536 CIDRs of nodes by /{size}")
        } else {
            return;
        };
        self.refuse("cluster-cidr", &reason);
    }

    /// Returns the ranges of pods, or `None` if they are wrong.
    fn pod_ranges(&mut self) -> Option<Vec<Range>> {
        let ranges = read_ranges(&self.text("cluster-cidr"));
        match &ranges {
            None => self.refuse("cluster-cidr", "must be ranges of addresses, such as 10.244.0.0/16"),
            Some(ranges) if !is_stack(ranges) => {
                self.refuse("cluster-cidr", "must be one range, or one of each IP family");
            }
            Some(_) => return ranges,
        }
        None
    }

    /// Refuses one of two files that are useless without each other.
    fn pair(&mut self, cert: &str, key: &str) {
        match (self.is_given(cert), self.is_given(key)) {
            (true, false) => self.refuse(cert, &format!("needs its key: give --{key}")),
            (false, true) => self.refuse(key, &format!("needs its certificate: give --{cert}")),
            (true, true) | (false, false) => {}
        }
    }

    fn metrics(&mut self) {
        if self.is_given("allow-metric-labels") && self.is_given("allow-metric-labels-manifest") {
            self.refuse("allow-metric-labels", "cannot be combined with --allow-metric-labels-manifest");
        }
    }

    fn request_headers(&mut self) {
        const GATE: &str = "RemoteRequestHeaderUID";
        if self.is_given("requestheader-uid-headers") && !self.settings.gates().is_on(GATE) {
            self.refuse("requestheader-uid-headers", &format!("needs the feature gate {GATE}"));
        }
    }

    fn is_on(&self, flag: &str) -> bool {
        self.get(flag).unwrap_or(false)
    }

    fn is_given(&self, flag: &str) -> bool {
        !self.text(flag).is_empty()
    }

    fn get<T: FromValue>(&self, flag: &str) -> Option<T> {
        self.settings.get(flag).ok()
    }

    fn text(&self, flag: &str) -> String {
        self.settings.value(flag).map(ToString::to_string).unwrap_or_default()
    }

    fn refuse(&mut self, flag: &str, reason: &str) {
        let given = self.text(flag);
        let origin = self.settings.origin(flag).unwrap_or(&Origin::Default);
        let place = if *origin == Origin::Default { format!("--{flag}") } else { origin.to_string() };
        self.reasons.push(format!("{place}: {given:?} {reason}"));
    }
}

/// A range of addresses: its first address, and the number of bits that all addresses share.
#[derive(Debug, Clone, Copy)]
struct Range {
    address: IpAddr,
    length: u8,
}

/// The ranges in CIDR notation, separated by commas.
fn read_ranges(text: &str) -> Option<Vec<Range>> {
    text.trim().split(',').map(range).collect()
}

/// Returns `true` if these are one range, or one of each IP family.
fn is_stack(ranges: &[Range]) -> bool {
    match ranges {
        [one, other] => one.address.is_ipv4() != other.address.is_ipv4(),
        _ => ranges.len() == 1,
    }
}

/// A range in CIDR notation. Octets may have leading zeros, as upstream.
fn range(text: &str) -> Option<Range> {
    let (address, length) = text.split_once('/')?;
    let address = kcm_framework::api::parse_ip(address)?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length: u8 = length.parse().ok().filter(|_| length.bytes().all(|byte| byte.is_ascii_digit()))?;
    (length <= most).then_some(Range { address, length })
}

#[cfg(test)]
mod tests {
    use super::range;

    #[test]
    fn ranges_are_addresses_with_a_length_that_fits() {
        for text in ["10.244.0.0/16", "010.244.0.0/16", "0.0.0.0/0", "fd00::/64", "::1/128"] {
            assert!(range(text).is_some(), "{text}");
        }
        for text in ["10.244.0.0", "10.244.0.0/33", "10.244.0/16", "fd00::/129", "10.0.0.0/+8", "10.0.0.0/", "/8", ""] {
            assert!(range(text).is_none(), "{text}");
        }
    }
}
