//! TLS of the HTTPS port: certificates by host name, reloaded when their files change, and the negotiated parameters.

mod cert_dir;
mod client_certificates;
mod key_pair;
mod parameters;
mod self_signed;
mod server_names;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use kcm_config::CertKey;
use kcm_framework::x509::validity;
use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{DistinguishedName, ServerConfig};

use client_certificates::AnyClientCertificate;
pub use key_pair::PairError;
use key_pair::{KeyPair, KeyPairFiles};
pub(crate) use parameters::TlsParameters;
use server_names::ServerNames;

/// Source of the default certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyPairSource {
    /// Two files, which must exist.
    Files {
        /// File of the certificate, followed by the certificates of its CAs.
        cert: PathBuf,
        /// File of the private key.
        key: PathBuf,
    },
    /// Two files in `--cert-dir`. A self-signed certificate is written to them if neither exists.
    Folder {
        /// File of the certificate.
        cert: PathBuf,
        /// File of the private key.
        key: PathBuf,
    },
    /// A self-signed certificate that only this process has.
    InMemory,
}

/// Certificates and parameters of the HTTPS port.
#[derive(Debug, Clone)]
pub(crate) struct TlsSettings {
    /// Certificate for all other host names.
    pub(crate) pair: KeyPairSource,
    /// The certificates for certain host names.
    pub(crate) by_name: Vec<CertKey>,
    /// Versions, cipher suites and key exchange.
    pub(crate) parameters: TlsParameters,
    /// Whether HTTP/2 is offered.
    pub(crate) http2: bool,
}

/// An error that prevents TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A certificate or its key.
    #[error(transparent)]
    Pair(#[from] PairError),
    /// The parameters do not go together.
    #[error("cannot serve TLS with the given --tls-min-version, --tls-cipher-suites and --tls-curve-preferences")]
    Parameters(#[source] rustls::Error),
}

/// The TLS configuration of new connections.
pub(super) struct Tls {
    settings: TlsSettings,
    /// A self-signed pair that is in no file.
    in_memory: Option<KeyPair>,
    loaded: Mutex<Loaded>,
}

/// The key pairs that were read, and the configurations that follow from them.
struct Loaded {
    default: KeyPair,
    by_name: Vec<KeyPair>,
    clients: Option<Vec<DistinguishedName>>,
    configs: Configs,
}

struct Configs {
    default: Arc<ServerConfig>,
    /// For connections without a host name, by the address that the client has connected to.
    by_address: BTreeMap<IpAddr, Arc<ServerConfig>>,
}

impl Tls {
    /// Reads all certificates; a self-signed one is valid from `now`, for `bound` and the names of this machine.
    ///
    /// # Errors
    /// If a file cannot be read, or a pair cannot be used.
    pub(super) fn load(settings: TlsSettings, bound: IpAddr, now: Timestamp) -> Result<Self, TlsError> {
        let in_memory = match &settings.pair {
            KeyPairSource::Files { .. } => None,
            KeyPairSource::Folder { cert, key } => {
                let files = KeyPairFiles { cert: cert.clone(), key: key.clone() };
                cert_dir::generate_if_missing(&files, bound, now)?;
                None
            }
            KeyPairSource::InMemory => Some(self_signed::generate(bound, now).map_err(PairError::Generate)?),
        };
        let (default, by_name) = read(&settings, in_memory.as_ref())?;
        let configs = configs(&settings, &default, &by_name, None)?;
        let loaded = Mutex::new(Loaded { default, by_name, clients: None, configs });
        Ok(Self { settings, in_memory, loaded })
    }

    /// The configuration of a connection to the local address `to`.
    pub(super) fn config(&self, to: Option<IpAddr>) -> Arc<ServerConfig> {
        let loaded = self.loaded.lock();
        let by_address = to.and_then(|to| loaded.configs.by_address.get(&to.to_canonical()));
        Arc::clone(by_address.unwrap_or(&loaded.configs.default))
    }

    /// The end of the certificate that ends first.
    pub(super) fn first_end(&self) -> Option<Timestamp> {
        let loaded = self.loaded.lock();
        let ends = [&loaded.default].into_iter().chain(&loaded.by_name).filter_map(|pair| {
            let certificate = CertificateDer::from_pem_slice(&pair.cert).ok()?;
            Some(validity(&certificate)?.not_after)
        });
        ends.min()
    }

    /// Reads the files again. Returns `true` if anything has changed. Invalid pairs change nothing.
    ///
    /// # Errors
    /// The errors of [`load`](Self::load).
    pub(super) fn reload(&self) -> Result<bool, TlsError> {
        let (default, by_name) = read(&self.settings, self.in_memory.as_ref())?;
        let clients = {
            let loaded = self.loaded.lock();
            if loaded.default == default && loaded.by_name == by_name {
                return Ok(false);
            }
            loaded.clients.clone()
        };
        let configs = configs(&self.settings, &default, &by_name, clients.as_deref())?;
        let mut loaded = self.loaded.lock();
        (loaded.default, loaded.by_name, loaded.configs) = (default, by_name, configs);
        Ok(true)
    }

    /// Asks clients for certificates of these CAs from now on; `None` asks for none.
    ///
    /// # Errors
    /// Only if [`load`](Self::load) would fail as well.
    pub(super) fn ask_for(&self, clients: Option<Vec<DistinguishedName>>) -> Result<(), TlsError> {
        let mut loaded = self.loaded.lock();
        loaded.configs = configs(&self.settings, &loaded.default, &loaded.by_name, clients.as_deref())?;
        loaded.clients = clients;
        Ok(())
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Reads the pairs from their files.
fn read(settings: &TlsSettings, in_memory: Option<&KeyPair>) -> Result<(KeyPair, Vec<KeyPair>), PairError> {
    let default = match (&settings.pair, in_memory) {
        (KeyPairSource::Files { cert, key } | KeyPairSource::Folder { cert, key }, _) => {
            KeyPairFiles { cert: cert.clone(), key: key.clone() }.read()?
        }
        (KeyPairSource::InMemory, Some(pair)) => pair.clone(),
        (KeyPairSource::InMemory, None) => return Err(PairError::Missing),
    };
    let by_name = settings
        .by_name
        .iter()
        .map(|pair| KeyPairFiles { cert: PathBuf::from(&pair.cert), key: PathBuf::from(&pair.key) }.read());
    Ok((default, by_name.collect::<Result<_, _>>()?))
}

fn configs(
    settings: &TlsSettings,
    default: &KeyPair,
    by_name: &[KeyPair],
    clients: Option<&[DistinguishedName]>,
) -> Result<Configs, TlsError> {
    let provider = settings.parameters.provider();
    let default = default.certified(provider)?;
    let mut others = Vec::new();
    for (pair, files) in by_name.iter().zip(&settings.by_name) {
        others.push((files.names.clone(), pair.certified(provider)?));
    }
    let names = ServerNames::new(default, others);
    let config = |names: ServerNames| -> Result<Arc<ServerConfig>, TlsError> {
        let builder = ServerConfig::builder_with_provider(Arc::clone(provider))
            .with_protocol_versions(settings.parameters.versions())
            .map_err(TlsError::Parameters)?;
        let builder = match clients {
            Some(authorities) => {
                builder.with_client_cert_verifier(Arc::new(AnyClientCertificate::new(authorities.to_vec(), provider)))
            }
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(Arc::new(names));
        // Probes and scrapers do not resume sessions, and clients would control the memory for resumption.
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        if settings.http2 {
            config.alpn_protocols.insert(0, b"h2".to_vec());
        }
        Ok(Arc::new(config))
    };
    let by_address = names.addresses().map(|(address, names)| Ok((address, config(names)?)));
    let by_address = by_address.collect::<Result<_, TlsError>>()?;
    Ok(Configs { default: config(names)?, by_address })
}

#[cfg(test)]
mod tests;
