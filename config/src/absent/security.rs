//! Of certificates.

use super::AbsentSettings;
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
];
