//! Of certificates, service accounts and their tokens.

use super::AbsentSettings;
use crate::checks;
use crate::duration::GoDuration;
use crate::row::{Initial, Row};

/// The settings of each controller.
pub(super) const CONTROLLERS: &[AbsentSettings] = &[
    AbsentSettings {
        controller: "certificatesigningrequest-signing-controller",
        rows: &[
            Row::new("cluster-signing-cert-file", "Certificatesigningrequest-signing-controller", Initial::String("")).path("CSRSigningController.ClusterSigningCertFile").help("The certificate of the authority, in PEM, that signs for every signer; with it, no file of a single signer may be given."),
            Row::new("cluster-signing-key-file", "Certificatesigningrequest-signing-controller", Initial::String("")).path("CSRSigningController.ClusterSigningKeyFile").help("The private key of --cluster-signing-cert-file, in PEM."),
            Row::new("cluster-signing-duration", "Certificatesigningrequest-signing-controller", Initial::Duration(GoDuration::from_secs(8760 * 60 * 60))).path("CSRSigningController.ClusterSigningDuration").help("How long a certificate counts, at most; a request may ask for less."),
            Row::new("cluster-signing-kube-apiserver-client-cert-file", "Certificatesigningrequest-signing-controller", Initial::String("")).path("CSRSigningController.KubeAPIServerClientSignerConfiguration.CertFile").help("The certificate of the authority, in PEM, that signs for the signer kubernetes.io/kube-apiserver-client."),
            Row::new("cluster-signing-kube-apiserver-client-key-file", "Certificatesigningrequest-signing-controller", Initial::String("")).path("CSRSigningController.KubeAPIServerClientSignerConfiguration.KeyFile").help("The private key of --cluster-signing-kube-apiserver-client-cert-file, in PEM."),
            Row::new("cluster-signing-kubelet-client-cert-file", "Certificatesigningrequest-signing-controller", Initial::String("")).path("CSRSigningController.KubeletClientSignerConfiguration.CertFile").help("The certificate of the authority, in PEM, that signs for the signer kubernetes.io/kube-apiserver-client-kubelet."),
            Row::new("cluster-signing-kubelet-client-key-file", "Certificatesigningrequest-signing-controller", Initial::String("")).path("CSRSigningController.KubeletClientSignerConfiguration.KeyFile").help("The private key of --cluster-signing-kubelet-client-cert-file, in PEM."),
            Row::new("cluster-signing-kubelet-serving-cert-file", "Certificatesigningrequest-signing-controller", Initial::String("")).path("CSRSigningController.KubeletServingSignerConfiguration.CertFile").help("The certificate of the authority, in PEM, that signs for the signer kubernetes.io/kubelet-serving."),
            Row::new("cluster-signing-kubelet-serving-key-file", "Certificatesigningrequest-signing-controller", Initial::String("")).path("CSRSigningController.KubeletServingSignerConfiguration.KeyFile").help("The private key of --cluster-signing-kubelet-serving-cert-file, in PEM."),
            Row::new("cluster-signing-legacy-unknown-cert-file", "Certificatesigningrequest-signing-controller", Initial::String("")).path("CSRSigningController.LegacyUnknownSignerConfiguration.CertFile").help("The certificate of the authority, in PEM, that signs for the signer kubernetes.io/legacy-unknown."),
            Row::new("cluster-signing-legacy-unknown-key-file", "Certificatesigningrequest-signing-controller", Initial::String("")).path("CSRSigningController.LegacyUnknownSignerConfiguration.KeyFile").help("The private key of --cluster-signing-legacy-unknown-cert-file, in PEM."),
        ],
    },
    AbsentSettings {
        controller: "legacy-serviceaccount-token-cleaner-controller",
        rows: &[
            Row::new("legacy-service-account-token-clean-up-period", "Legacy-serviceaccount-token-cleaner-controller", Initial::Duration(GoDuration::from_secs(8760 * 60 * 60))).path("LegacySATokenCleaner.CleanUpPeriod").help("How long a token in a secret may be unused before it is deleted."),
        ],
    },
    AbsentSettings {
        controller: "serviceaccount-token-controller",
        rows: &[
            Row::new("concurrent-serviceaccount-token-syncs", "Serviceaccount-controller", Initial::Int32(5)).path("SAController.ConcurrentSATokenSyncs").help("How many tokens of service accounts are worked on at once. More is faster, and loads the API server and the network more.").check(checks::positive),
            Row::new("root-ca-file", "Serviceaccount-controller", Initial::String("")).path("SAController.RootCAFile").help("A bundle of authorities, in PEM, that the tokens of service accounts carry and that is published in every namespace."),
            Row::new("service-account-private-key-file", "Serviceaccount-controller", Initial::String("")).path("SAController.ServiceAccountKeyFile").help("The private key, RSA or ECDSA in PEM, that signs the tokens of service accounts; without it no token is made in a secret."),
        ],
    },
];
