//! Settings of the controllers of certificates.

use super::AbsentSettings;
use crate::duration::GoDuration;
use crate::row::{Initial, Row};

/// The settings of each controller.
pub(super) const CONTROLLERS: &[AbsentSettings] = &[AbsentSettings {
    controller: "certificatesigningrequest-signing-controller",
    rows: &[
        Row::new("cluster-signing-cert-file", "Certificatesigningrequest-signing-controller", Initial::String(""))
            .path("CSRSigningController.ClusterSigningCertFile")
            .help("PEM file with the CA certificate of all signers. Not together with the files of single signers.")
            .without_effect(),
        Row::new("cluster-signing-key-file", "Certificatesigningrequest-signing-controller", Initial::String(""))
            .path("CSRSigningController.ClusterSigningKeyFile")
            .help("PEM file with the CA private key of all signers. Not together with the files of single signers.")
            .without_effect(),
        Row::new(
            "cluster-signing-duration",
            "Certificatesigningrequest-signing-controller",
            Initial::Duration(GoDuration::from_secs(8760 * 60 * 60)),
        )
        .path("CSRSigningController.ClusterSigningDuration")
        .help("Maximum lifetime of signed certificates.")
        .without_effect(),
        Row::new(
            "cluster-signing-kube-apiserver-client-cert-file",
            "Certificatesigningrequest-signing-controller",
            Initial::String(""),
        )
        .path("CSRSigningController.KubeAPIServerClientSignerConfiguration.CertFile")
        .help("PEM file with the CA certificate of the signer kubernetes.io/kube-apiserver-client.")
        .without_effect(),
        Row::new(
            "cluster-signing-kube-apiserver-client-key-file",
            "Certificatesigningrequest-signing-controller",
            Initial::String(""),
        )
        .path("CSRSigningController.KubeAPIServerClientSignerConfiguration.KeyFile")
        .help("PEM file with the CA private key of the signer kubernetes.io/kube-apiserver-client.")
        .without_effect(),
        Row::new(
            "cluster-signing-kubelet-client-cert-file",
            "Certificatesigningrequest-signing-controller",
            Initial::String(""),
        )
        .path("CSRSigningController.KubeletClientSignerConfiguration.CertFile")
        .help("PEM file with the CA certificate of the signer kubernetes.io/kube-apiserver-client-kubelet.")
        .without_effect(),
        Row::new(
            "cluster-signing-kubelet-client-key-file",
            "Certificatesigningrequest-signing-controller",
            Initial::String(""),
        )
        .path("CSRSigningController.KubeletClientSignerConfiguration.KeyFile")
        .help("PEM file with the CA private key of the signer kubernetes.io/kube-apiserver-client-kubelet.")
        .without_effect(),
        Row::new(
            "cluster-signing-kubelet-serving-cert-file",
            "Certificatesigningrequest-signing-controller",
            Initial::String(""),
        )
        .path("CSRSigningController.KubeletServingSignerConfiguration.CertFile")
        .help("PEM file with the CA certificate of the signer kubernetes.io/kubelet-serving.")
        .without_effect(),
        Row::new(
            "cluster-signing-kubelet-serving-key-file",
            "Certificatesigningrequest-signing-controller",
            Initial::String(""),
        )
        .path("CSRSigningController.KubeletServingSignerConfiguration.KeyFile")
        .help("PEM file with the CA private key of the signer kubernetes.io/kubelet-serving.")
        .without_effect(),
        Row::new(
            "cluster-signing-legacy-unknown-cert-file",
            "Certificatesigningrequest-signing-controller",
            Initial::String(""),
        )
        .path("CSRSigningController.LegacyUnknownSignerConfiguration.CertFile")
        .help("PEM file with the CA certificate of the signer kubernetes.io/legacy-unknown.")
        .without_effect(),
        Row::new(
            "cluster-signing-legacy-unknown-key-file",
            "Certificatesigningrequest-signing-controller",
            Initial::String(""),
        )
        .path("CSRSigningController.LegacyUnknownSignerConfiguration.KeyFile")
        .help("PEM file with the CA private key of the signer kubernetes.io/legacy-unknown.")
        .without_effect(),
    ],
}];
