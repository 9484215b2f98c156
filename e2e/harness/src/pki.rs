//! The certificates and keys of one control plane. Each has its own.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

/// A certificate authority and the folder that holds what it signed.
pub struct Pki {
    folder: PathBuf,
    authority: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, in files.
#[derive(Debug)]
pub struct Identity {
    /// The certificate, PEM.
    pub certificate: PathBuf,
    /// Its private key, PKCS #8 in PEM.
    pub key: PathBuf,
}

impl Pki {
    /// Makes an authority in `folder`.
    ///
    /// # Errors
    ///
    /// If a key cannot be made or a file cannot be written.
    pub fn new(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let mut params = named("e2e authority", &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().context("cannot make the authority's key")?;
        let authority = CertifiedIssuer::self_signed(params, key).context("cannot sign the authority's certificate")?;
        let pki = Self { folder: folder.to_owned(), authority };
        pki.write("ca.crt", &pki.authority.pem())?;
        pki.write("ca.key", &pki.authority.key().serialize_pem())?;
        Ok(pki)
    }

    /// The authority's certificate.
    pub fn authority(&self) -> PathBuf {
        self.folder.join("ca.crt")
    }

    /// A certificate of an API server, in files of that name: a leaf under the authority, since rustls refuses an
    /// authority's own certificate from a server.
    ///
    /// # Errors
    ///
    /// If it cannot be made or written.
    pub fn server(&self, name: &str) -> Result<Identity> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()])
            .context("cannot name the server's certificate")?;
        params.distinguished_name = named("kube-apiserver", &[]).distinguished_name;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.issue(name, params)
    }

    /// A client's certificate, by which the API server knows a user and its groups.
    ///
    /// # Errors
    ///
    /// If it cannot be made or written.
    pub fn client(&self, user: &str, groups: &[&str]) -> Result<Identity> {
        let mut params = named(user, groups);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(&user.replace(':', "-"), params)
    }

    /// The keys that sign and verify the tokens of service accounts; the private one comes first.
    ///
    /// # Errors
    ///
    /// If they cannot be made or written.
    pub fn service_account_keys(&self) -> Result<(PathBuf, PathBuf)> {
        let paths = ["sa.key", "sa.pub"].map(|file| self.folder.join(file));
        if paths.iter().all(|path| path.is_file()) {
            // API servers over one store accept the tokens of each other.
            let [private, public] = paths;
            return Ok((private, public));
        }
        let key = KeyPair::generate().context("cannot make the key of the service accounts")?;
        Ok((self.write("sa.key", &key.serialize_pem())?, self.write("sa.pub", &key.public_key_pem())?))
    }

    fn issue(&self, name: &str, mut params: CertificateParams) -> Result<Identity> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().with_context(|| format!("cannot make the key of {name}"))?;
        let certificate = params
            .signed_by(&key, &self.authority)
            .with_context(|| format!("cannot sign the certificate of {name}"))?;
        Ok(Identity {
            certificate: self.write(&format!("{name}.crt"), &certificate.pem())?,
            key: self.write(&format!("{name}.key"), &key.serialize_pem())?,
        })
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}

/// The subject of a certificate as Kubernetes reads it: the common name is the user, the
/// organizations are its groups.
fn named(user: &str, groups: &[&str]) -> CertificateParams {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, user);
    for group in groups {
        subject.push(DnType::OrganizationName, *group);
    }
    let mut params = CertificateParams::default();
    params.distinguished_name = subject;
    params
}
