//! Wrong command lines: each gives all of its mistakes at once, and starts nothing.

#![cfg(feature = "builtin")]

use crate::support::program::run;

/// Arguments, and the sentences that refuse them.
type Case = (&'static [&'static str], &'static [&'static str]);

#[test]
fn every_wrong_command_line_gives_all_its_mistakes() {
    assert!(CASES.len() >= 30);
    for (arguments, expected) in CASES {
        assert_eq!(
            run(env!("CARGO_BIN_EXE_kube-controller-manager"), arguments).refusals(),
            *expected,
            "{arguments:?}"
        );
    }
}

const CASES: &[Case] = &[
    (
        &["--kubecofnig=x", "--v=much"],
        &[
            "--kubecofnig: unknown flag; did you mean --kubeconfig?",
            "--v is \"much\", expected a whole number from -2147483648 to 2147483647",
        ],
    ),
    (
        &["--leader-elect", "false", "--secure-port=https"],
        &[
            "false: arguments that are not flags are not taken; the value of --leader-elect is given with an equals sign",
            "--secure-port is \"https\", expected a whole number",
        ],
    ),
    (
        &["--secure-port=70000", "--bind-address=localhost", "--tls-min-version=VersionTLS9"],
        &[
            "--bind-address is \"localhost\", expected an IP address",
            "--secure-port is \"70000\": the value must be between 0 and 65535",
            "--tls-min-version is \"VersionTLS9\": the value must be one of VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13",
        ],
    ),
    (
        &["--tls-cipher-suites=TLS_AES_128_GCM_SHA265,TLS_NONE", "--tls-curve-preferences=29,30"],
        &[
            "--tls-cipher-suites is \"TLS_AES_128_GCM_SHA265,TLS_NONE\": the value has \"TLS_AES_128_GCM_SHA265\", which is unknown; did you mean TLS_AES_128_GCM_SHA256?",
            "--tls-curve-preferences is \"29,30\": the value has 30, which is unknown; known are [23, 24, 25, 29, 4587, 4588, 4589]",
        ],
    ),
    (
        &["--tls-curve-preferences=29,29", "--tls-sni-cert-key=only-a-file"],
        &[
            "--tls-sni-cert-key is \"only-a-file\", expected the files of a certificate and its key as CERT,KEY or CERT,KEY:NAME,NAME",
            "--tls-curve-preferences is \"29,29\": the value has 29 twice",
        ],
    ),
    (
        &["--tls-cert-file=/a.crt", "--leader-elect=false"],
        &["--tls-cert-file: \"/a.crt\" needs its key: give --tls-private-key-file"],
    ),
    (
        &["--tls-private-key-file=/a.key", "--leader-elect=false"],
        &["--tls-private-key-file: \"/a.key\" needs its certificate: give --tls-cert-file"],
    ),
    (
        &["--leader-elect=true", "--leader-elect-lease-duration=5500ms", "--leader-elect-resource-name="],
        &[
            "--leader-elect-resource-name: \"\" must not be empty",
            "--leader-elect-lease-duration: \"5.5s\" must be whole seconds, as a lease holds them",
            "--leader-elect-lease-duration: \"5.5s\" must be greater than --leader-elect-renew-deadline, which is 10s",
        ],
    ),
    (
        &["--leader-elect-renew-deadline=2s", "--leader-elect-lease-duration=1s"],
        &[
            "--leader-elect-lease-duration: \"1s\" must be greater than --leader-elect-renew-deadline, which is 2s",
            "--leader-elect-renew-deadline: \"2s\" must be greater than 1.2 times --leader-elect-retry-period, which is 2s",
        ],
    ),
    (
        &["--leader-elect-retry-period=0s", "--leader-elect-resource-lock=endpoints"],
        &[
            "--leader-elect-resource-lock: \"endpoints\" must be leases",
            "--leader-elect-retry-period: \"0s\" must be greater than zero",
        ],
    ),
    (
        &["--controllers=*,-nodeipam,replicasets,selinux-warning-controller,-selinux-warning-controller,zzz"],
        &[
            "--controllers: \"replicasets\" is not in the list of known controllers; did you mean \"replicaset\"?",
            "--controllers: \"zzz\" is not in the list of known controllers",
        ],
    ),
    (&["--controllers"], &["--controllers: has no value, expected a comma separated list"]),
    (
        &["--concurrent-job-syncs=0", "--concurrent-gc-syncs=-1", "--concurrent-service-endpoint-syncs=51"],
        &[
            "--concurrent-service-endpoint-syncs is \"51\": the value must be between 1 and 50",
            "--concurrent-gc-syncs is \"-1\": the value must be greater than zero",
            "--concurrent-job-syncs is \"0\": the value must be greater than zero",
        ],
    ),
    (
        &["--max-endpoints-per-slice=1001", "--mirroring-max-endpoints-per-subset=0"],
        &[
            "--max-endpoints-per-slice is \"1001\": the value must be between 1 and 1000",
            "--mirroring-max-endpoints-per-subset is \"0\": the value must be between 1 and 1000",
        ],
    ),
    (
        &["--cluster-signing-cert-file=/a", "--cluster-signing-kubelet-serving-cert-file=/b"],
        &[
            "--cluster-signing-kubelet-serving-cert-file: \"/b\" needs its key: give --cluster-signing-kubelet-serving-key-file",
            "--cluster-signing-cert-file: \"/a\" applies to every signer and cannot be combined with --cluster-signing-kubelet-serving-cert-file",
        ],
    ),
    (
        &["--cluster-signing-legacy-unknown-key-file=/k", "--cluster-signing-kubelet-client-cert-file=/c"],
        &[
            "--cluster-signing-kubelet-client-cert-file: \"/c\" needs its key: give --cluster-signing-kubelet-client-key-file",
            "--cluster-signing-legacy-unknown-key-file: \"/k\" needs its certificate: give --cluster-signing-legacy-unknown-cert-file",
        ],
    ),
    (
        &["--feature-gates=WorkloadWithJob=true,GenericWorkload=true"],
        &[
            "--feature-gates: this program makes no workloads and pod groups for jobs: leave the feature gate WorkloadWithJob off",
        ],
    ),
    (
        &["--emulated-version=1.34", "--feature-gates=JobManagedBy=false"],
        &["--feature-gates: this program honours JobManagedBy in every emulated version: leave the feature gate on"],
    ),
    (
        &["--emulated-version=1.33", "--feature-gates=JobPodReplacementPolicy=false", "--concurrent-service-syncs=2"],
        &[
            "--emulated-version is \"1.33\": the value must be between 1.34 and 1.37",
            "--concurrent-service-syncs: Kubernetes has removed this flag: it had no effect any more; leave it out",
            "--feature-gates: feature gate JobPodReplacementPolicy was removed in Kubernetes 1.37; it has been locked to true since 1.34: leave it out",
        ],
    ),
    (&["--allocate-node-cidrs=true"], &["--cluster-cidr: \"\" must be ranges of addresses, such as 10.244.0.0/16"]),
    (
        &[
            "--allocate-node-cidrs",
            "--cluster-cidr=10.0.0.0/8,10.244.0.0/16",
            "--service-cluster-ip-range=10.96.0.0/12,10.0.0.0/24",
        ],
        &[
            "--service-cluster-ip-range: \"10.96.0.0/12,10.0.0.0/24\" must be one range, or one of each IP family",
            "--cluster-cidr: \"10.0.0.0/8,10.244.0.0/16\" must be one range, or one of each IP family",
        ],
    ),
    (
        &["--allocate-node-cidrs", "--cluster-cidr=10.244.0.0/16,fd00::/48", "--node-cidr-mask-size=24"],
        &[
            "--node-cidr-mask-size: \"24\" is for single-stack clusters: use --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6",
        ],
    ),
    (
        &["--allocate-node-cidrs", "--cluster-cidr=fd00::/48", "--node-cidr-mask-size-ipv4=24"],
        &["--node-cidr-mask-size-ipv4: \"24\" is for clusters with IPv4, but --cluster-cidr is IPv6"],
    ),
    (
        &["--allocate-node-cidrs", "--cluster-cidr=10.244.0.0/26"],
        &["--cluster-cidr: \"10.244.0.0/26\" has 10.244.0.0/26, which is smaller than /24, the CIDR of a node"],
    ),
    (
        &["--allocate-node-cidrs", "--cluster-cidr=10.244.0.0/16", "--node-cidr-mask-size=33"],
        &[
            "--cluster-cidr: \"10.244.0.0/16\" has 10.244.0.0/16, whose addresses are shorter than /33, the CIDR of a node",
        ],
    ),
    (
        &["--allocate-node-cidrs", "--cluster-cidr=fd00::/40"],
        &["--cluster-cidr: \"fd00::/40\" has fd00::/40, which has more than 65536 CIDRs of nodes by /64"],
    ),
    (
        &["--service-cluster-ip-range=10.0.0.0/16,fd00::/108,10.1.0.0/16"],
        &["--service-cluster-ip-range is \"10.0.0.0/16,fd00::/108,10.1.0.0/16\": the value must be at most two ranges"],
    ),
    (
        &["--cloud-provider=aws", "--cidr-allocator-type=CloudAllocator"],
        &[
            "--cidr-allocator-type is \"CloudAllocator\": the value must be RangeAllocator",
            "--cloud-provider is \"aws\": the value must be external: there are no built-in cloud providers since Kubernetes 1.31",
        ],
    ),
    (
        &["--feature-gates=PodDeletionCsot=true,JobManagedBy=false,NewGate"],
        &[
            "--feature-gates: unknown feature gate PodDeletionCsot; did you mean PodDeletionCost?",
            "--feature-gates: feature gate JobManagedBy is locked to true and cannot be changed",
            "--feature-gates: feature-gates is \"NewGate\", expected a comma separated list of Gate=true or Gate=false",
        ],
    ),
    (
        &["--feature-gates=kube:PodDeletionCost=true,HPAScaleToZero=true", "--emulated-version=1.20"],
        &[
            "--emulated-version is \"1.20\": the value must be between 1.34 and 1.37",
            "--feature-gates: feature gates are given with the prefix kube: and without it; give all of them in one way",
        ],
    ),
    (
        &["--feature-gates=ClusterTrustBundle=false"],
        &[
            "--feature-gates: feature gate ClusterTrustBundleProjection is on, and requires others that are off: ClusterTrustBundle",
        ],
    ),
    (
        &["--emulated-version=1.35", "--min-compatibility-version=1.36", "--feature-gates=AtomicFIFO=true"],
        &["--min-compatibility-version is \"1.36\": the value must be between 1.34 and 1.35"],
    ),
    (
        &["--logging-format=xml", "--log-flush-frequency=0s"],
        &[
            "--log-flush-frequency is \"0s\": the value must be greater than zero",
            "--logging-format is \"xml\": the value must be one of text, json",
        ],
    ),
    (
        &["--log-json-split-stream", "--logging-format=json", "--vmodule=a=1", "--leader-elect=false"],
        &[
            "--vmodule: a=1 works in text only: give --logging-format=text, or leave it out",
            "--log-json-split-stream: true needs the feature gate LoggingAlphaOptions: give --feature-gates=LoggingAlphaOptions=true",
        ],
    ),
    (
        &["--vmodule=a", "--log-text-info-buffer-size=1KiB"],
        &[
            "--vmodule is \"a\", expected a comma separated list of pattern=N",
            "--log-text-info-buffer-size is \"1KiB\", expected a quantity, such as 64Ki",
        ],
    ),
    (
        &["--allow-metric-labels=metric=a", "--disabled-metrics=a-b"],
        &[
            "--allow-metric-labels is \"metric=a\": the value must have keys as METRIC,LABEL, and has \"metric\"",
            "--disabled-metrics is \"a-b\": the value must be names of metrics, and \"a-b\" is none",
        ],
    ),
    (
        &["--allow-metric-labels=m,l=a", "--allow-metric-labels-manifest=/m.yaml"],
        &["--allow-metric-labels: \"\\\"m,l=a\\\"\" cannot be combined with --allow-metric-labels-manifest"],
    ),
    (
        &[
            "--requestheader-username-headers= ",
            "--requestheader-uid-headers=X-Uid",
            "--authentication-token-webhook-cache-ttl=10",
        ],
        &[
            "--authentication-token-webhook-cache-ttl is \"10\", expected a duration with units, such as 1m30s",
            "--requestheader-uid-headers is \"X-Uid\": the value must include X-Remote-Uid",
            "--requestheader-username-headers is \" \": the value must have no empty items",
        ],
    ),
    (
        &[
            "--horizontal-pod-autoscaler-tolerance=ten",
            "--node-eviction-rate=NaN",
            "--attach-detach-reconcile-sync-period=500ms",
        ],
        &[
            "--horizontal-pod-autoscaler-tolerance is \"ten\", expected a number",
            "--node-eviction-rate is \"NaN\", expected a number",
            "--attach-detach-reconcile-sync-period is \"500ms\": the value must be at least 1s",
        ],
    ),
    (
        &[
            "--pod-eviction-timeout=5m",
            "--port=0",
            "--address=127.0.0.1",
            "--logtostderr=true",
            "--deployment-controller-sync-period=30s",
        ],
        &[
            "--pod-eviction-timeout: Kubernetes has removed this flag: pods are evicted by taints; use --default-not-ready-toleration-seconds and --default-unreachable-toleration-seconds of the API server",
            "--port: Kubernetes has removed this flag: there is no port without encryption; use --secure-port",
            "--address: Kubernetes has removed this flag: there is no port without encryption; use --bind-address",
            "--logtostderr: Kubernetes has removed this flag: logs go to standard error, or with --log-text-split-stream to standard output as well; redirect them, and leave it out",
            "--deployment-controller-sync-period: Kubernetes has removed this flag: it had no effect any more; leave it out",
        ],
    ),
    (
        &["--kube-api-content-type=text/plain", "--kube-api-burst=-1", "start"],
        &[
            "start: arguments that are not flags are not taken",
            "--kube-api-content-type is \"text/plain\": the value must be one of application/vnd.kubernetes.protobuf, application/json, application/cbor",
        ],
    ),
    (
        &["--kube-api-burst=-1", "--master=https://10.0.0.1"],
        &[
            "--kube-api-burst: a burst of -1 lets no request pass: give at least 1, or --kube-api-qps=-1 for no limit",
            "--master: an address without credentials cannot be used: give --kubeconfig as well",
        ],
    ),
    (
        &["--version=v1.36.0", "--version=maybe"],
        &[
            "--version is \"v1.36.0\": the value cannot change the version that is reported; --version=raw prints it",
            "--version is \"maybe\", expected true, false or raw",
        ],
    ),
    (
        &["--show-hidden-metrics-for-version=1.20"],
        &["--show-hidden-metrics-for-version is \"1.20\": the value must be 1.35"],
    ),
    (
        &["--requestheader-uid-headers=X-Remote-Uid", "--feature-gates=RemoteRequestHeaderUID=false"],
        &["--requestheader-uid-headers: \"X-Remote-Uid\" needs the feature gate RemoteRequestHeaderUID"],
    ),
];
