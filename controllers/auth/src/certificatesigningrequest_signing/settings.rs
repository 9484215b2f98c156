//! The settings of this controller.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::SignedDuration;
use kcm_framework::config::{GoDuration, Row, Section, Setting};
use kcm_framework::{BoxError, ControllerContext};

use super::pair::Pair;
use super::signer::Signer;

const SECTION: Section = Section::new("Certificatesigningrequest-signing-controller", "CSRSigningController");

const DEFAULT_DURATION: GoDuration = GoDuration::from_secs(8760 * 60 * 60);

const CERTIFICATE: Setting<String> = SECTION
    .string("cluster-signing-cert-file", "ClusterSigningCertFile", "")
    .help("PEM file with the CA certificate of all signers. Not together with the files of single signers.");
const KEY: Setting<String> = SECTION
    .string("cluster-signing-key-file", "ClusterSigningKeyFile", "")
    .help("PEM file with the CA private key of all signers. Not together with the files of single signers.");
pub(super) const DURATION: Setting<GoDuration> = SECTION
    .duration("cluster-signing-duration", "ClusterSigningDuration", DEFAULT_DURATION)
    .help("Maximum lifetime of signed certificates.");
const API_CLIENT_CERTIFICATE: Setting<String> = SECTION
    .string("cluster-signing-kube-apiserver-client-cert-file", "KubeAPIServerClientSignerConfiguration.CertFile", "")
    .help("PEM file with the CA certificate of the signer kubernetes.io/kube-apiserver-client.");
const API_CLIENT_KEY: Setting<String> = SECTION
    .string("cluster-signing-kube-apiserver-client-key-file", "KubeAPIServerClientSignerConfiguration.KeyFile", "")
    .help("PEM file with the CA private key of the signer kubernetes.io/kube-apiserver-client.");
const KUBELET_CLIENT_CERTIFICATE: Setting<String> = SECTION
    .string("cluster-signing-kubelet-client-cert-file", "KubeletClientSignerConfiguration.CertFile", "")
    .help("PEM file with the CA certificate of the signer kubernetes.io/kube-apiserver-client-kubelet.");
const KUBELET_CLIENT_KEY: Setting<String> = SECTION
    .string("cluster-signing-kubelet-client-key-file", "KubeletClientSignerConfiguration.KeyFile", "")
    .help("PEM file with the CA private key of the signer kubernetes.io/kube-apiserver-client-kubelet.");
const KUBELET_SERVING_CERTIFICATE: Setting<String> = SECTION
    .string("cluster-signing-kubelet-serving-cert-file", "KubeletServingSignerConfiguration.CertFile", "")
    .help("PEM file with the CA certificate of the signer kubernetes.io/kubelet-serving.");
const KUBELET_SERVING_KEY: Setting<String> = SECTION
    .string("cluster-signing-kubelet-serving-key-file", "KubeletServingSignerConfiguration.KeyFile", "")
    .help("PEM file with the CA private key of the signer kubernetes.io/kubelet-serving.");
const LEGACY_UNKNOWN_CERTIFICATE: Setting<String> = SECTION
    .string("cluster-signing-legacy-unknown-cert-file", "LegacyUnknownSignerConfiguration.CertFile", "")
    .help("PEM file with the CA certificate of the signer kubernetes.io/legacy-unknown.");
const LEGACY_UNKNOWN_KEY: Setting<String> = SECTION
    .string("cluster-signing-legacy-unknown-key-file", "LegacyUnknownSignerConfiguration.KeyFile", "")
    .help("PEM file with the CA private key of the signer kubernetes.io/legacy-unknown.");

pub(super) const SETTINGS: &[Row] = &[
    CERTIFICATE.row(),
    KEY.row(),
    DURATION.row(),
    API_CLIENT_CERTIFICATE.row(),
    API_CLIENT_KEY.row(),
    KUBELET_CLIENT_CERTIFICATE.row(),
    KUBELET_CLIENT_KEY.row(),
    KUBELET_SERVING_CERTIFICATE.row(),
    KUBELET_SERVING_KEY.row(),
    LEGACY_UNKNOWN_CERTIFICATE.row(),
    LEGACY_UNKNOWN_KEY.row(),
];

/// The names of the files in the settings, which may be empty.
#[derive(Debug, Clone, Default)]
pub(super) struct Files {
    pub(super) common: [String; 2],
    pub(super) of_signers: BTreeMap<Signer, [String; 2]>,
}

impl Files {
    pub(super) fn read(context: &ControllerContext) -> Result<Self, BoxError> {
        let pair = |certificate: &Setting<String>, key: &Setting<String>| -> Result<[String; 2], BoxError> {
            Ok([context.get(certificate)?, context.get(key)?])
        };
        let of_signers = BTreeMap::from([
            (Signer::KubeletServing, pair(&KUBELET_SERVING_CERTIFICATE, &KUBELET_SERVING_KEY)?),
            (Signer::KubeletClient, pair(&KUBELET_CLIENT_CERTIFICATE, &KUBELET_CLIENT_KEY)?),
            (Signer::ApiClient, pair(&API_CLIENT_CERTIFICATE, &API_CLIENT_KEY)?),
            (Signer::LegacyUnknown, pair(&LEGACY_UNKNOWN_CERTIFICATE, &LEGACY_UNKNOWN_KEY)?),
        ]);
        Ok(Self { common: pair(&CERTIFICATE, &KEY)?, of_signers })
    }

    /// Returns the pair of each signer that signs. Half a pair counts as none: the host refuses the half of a signer.
    pub(super) fn pairs(&self) -> BTreeMap<Signer, Pair> {
        let whole = |[certificate, key]: &[String; 2]| {
            let is_whole = !certificate.is_empty() && !key.is_empty();
            is_whole.then(|| Pair { certificate: PathBuf::from(certificate), key: PathBuf::from(key) })
        };
        let are_separate = self.of_signers.values().flatten().any(|file| !file.is_empty());
        let files = |signer| if are_separate { self.of_signers.get(&signer) } else { Some(&self.common) };
        Signer::ALL.into_iter().filter_map(|signer| Some((signer, whole(files(signer)?)?))).collect()
    }
}

/// Returns the lifetime of certificates; zero means the default, as upstream's file has it.
pub(super) fn lifetime(configured: GoDuration) -> Result<SignedDuration, BoxError> {
    let lifetime = SignedDuration::try_from(configured.unsigned())?;
    if lifetime.is_zero() { Ok(SignedDuration::try_from(DEFAULT_DURATION.unsigned())?) } else { Ok(lifetime) }
}
