use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, ServerConnection};

use super::*;
use crate::tests::any_certificate::AnyCertificate;

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn now() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().expect("it is a time")
}

fn settings(pair: KeyPairSource) -> TlsSettings {
    let parameters = TlsParameters::new(&[], &[], "").expect("the defaults are supported");
    TlsSettings { pair, by_name: Vec::new(), parameters, http2: true }
}

/// Writes a self-signed pair for `name`.
fn write_pair(folder: &Path, file: &str, name: &str) -> CertKey {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).expect("it can be made");
    let path = |end: &str| folder.join(format!("{file}.{end}"));
    fs::write(path("crt"), made.cert.pem()).expect("there is room");
    fs::write(path("key"), made.signing_key.serialize_pem()).expect("there is room");
    CertKey { cert: path("crt").display().to_string(), key: path("key").display().to_string(), names: Vec::new() }
}

/// Returns the first certificate and the protocol that a client gets if it asks for `name` at the address `to`.
fn shown(tls: &Tls, to: IpAddr, name: &str) -> (Vec<u8>, Vec<u8>) {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("there are versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::try_from(name.to_owned()).expect("it is a name");
    let mut client = ClientConnection::new(Arc::new(config), name).expect("it can begin");
    let mut server = ServerConnection::new(tls.config(Some(to))).expect("it can begin");
    while client.is_handshaking() || server.is_handshaking() {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).expect("it is memory");
        }
        server.read_tls(&mut &bytes[..]).expect("it is memory");
        server.process_new_packets().expect("the client is right");
        bytes.clear();
        while server.wants_write() {
            server.write_tls(&mut bytes).expect("it is memory");
        }
        client.read_tls(&mut &bytes[..]).expect("it is memory");
        client.process_new_packets().expect("the server is right");
    }
    let certificate = client.peer_certificates().and_then(<[_]>::first).expect("it is shown one");
    (certificate.to_vec(), client.alpn_protocol().unwrap_or_default().to_vec())
}

fn certificate_in(path: impl AsRef<Path>) -> Vec<u8> {
    use rustls::pki_types::pem::PemObject as _;
    CertificateDer::from_pem_file(path).expect("it is a certificate").to_vec()
}

#[test]
fn a_self_signed_pair_is_made_once_and_its_key_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let path = |name: &str| folder.path().join("certs").join(name);
    let pair = || settings(KeyPairSource::Folder { cert: path("a.crt"), key: path("a.key") });
    let first = Tls::load(pair(), LOCAL, now()).expect("it can be made");
    assert_eq!(shown(&first, LOCAL, "localhost").0, certificate_in(path("a.crt")));
    let mode = fs::metadata(path("a.key")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = Tls::load(pair(), LOCAL, now()).expect("it is there");
    assert_eq!(shown(&again, LOCAL, "localhost"), shown(&first, LOCAL, "localhost"));

    fs::remove_file(path("a.key")).expect("it is there");
    assert!(matches!(Tls::load(pair(), LOCAL, now()), Err(TlsError::Pair(PairError::Half { .. }))));
}

#[test]
fn a_pair_in_memory_is_another_at_each_start_and_needs_no_file() {
    let load = || Tls::load(settings(KeyPairSource::InMemory), LOCAL, now()).expect("it can be made");
    let (one, other) = (load(), load());
    assert_ne!(shown(&one, LOCAL, "localhost").0, shown(&other, LOCAL, "localhost").0);
    assert!(!one.reload().expect("nothing is read"));
}

#[test]
fn clients_are_shown_the_certificate_of_the_name_that_they_ask_for() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let own = write_pair(folder.path(), "own", "own.example");
    let given = CertKey {
        names: vec!["*.given.example".to_owned(), "127.0.0.9".to_owned()],
        ..write_pair(folder.path(), "given", "unused.example")
    };
    let by_name = vec![own.clone(), given.clone()];
    let settings = TlsSettings { by_name, ..settings(KeyPairSource::InMemory) };
    let tls = Tls::load(settings, LOCAL, now()).expect("the files are right");
    let default = shown(&tls, LOCAL, "localhost").0;
    assert_eq!(shown(&tls, LOCAL, "own.example").0, certificate_in(&own.cert));
    assert_eq!(shown(&tls, LOCAL, "a.given.example").0, certificate_in(&given.cert));
    assert_eq!(shown(&tls, LOCAL, "unused.example").0, default);
    // Clients that connect to an address ask for no name.
    assert_eq!(shown(&tls, LOCAL, "127.0.0.1").0, default);
    assert_eq!(shown(&tls, [127, 0, 0, 9].into(), "127.0.0.9").0, certificate_in(&given.cert));
    assert_eq!(shown(&tls, [127, 0, 0, 9].into(), "other.example").0, default);
}

#[test]
fn changed_files_are_served_and_broken_ones_are_not() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let files = write_pair(folder.path(), "a", "a.example");
    let pair = KeyPairSource::Files { cert: files.cert.clone().into(), key: files.key.clone().into() };
    let tls = Tls::load(settings(pair), LOCAL, now()).expect("the files are right");
    let first = certificate_in(&files.cert);
    assert!(!tls.reload().expect("the files are right"));

    // In the middle of a change, the key does not fit the certificate yet.
    let old_key = fs::read(&files.key).expect("it is there");
    write_pair(folder.path(), "a", "a.example");
    let new_key = fs::read(&files.key).expect("it is there");
    fs::write(&files.key, old_key).expect("there is room");
    assert!(matches!(tls.reload(), Err(TlsError::Pair(PairError::Mismatch { .. }))));
    assert_eq!(shown(&tls, LOCAL, "a.example").0, first);

    fs::write(&files.key, new_key).expect("there is room");
    assert!(tls.reload().expect("the files are right"));
    assert_eq!(shown(&tls, LOCAL, "a.example").0, certificate_in(&files.cert));
    fs::remove_file(&files.cert).expect("it is there");
    assert!(matches!(tls.reload(), Err(TlsError::Pair(PairError::Read { .. }))));
}

#[test]
fn http_2_is_offered_unless_it_is_disabled() {
    let tls = |http2| {
        let settings = TlsSettings { http2, ..settings(KeyPairSource::InMemory) };
        Tls::load(settings, LOCAL, now()).expect("it can be made")
    };
    assert_eq!(shown(&tls(true), LOCAL, "localhost").1, b"h2");
    assert_eq!(shown(&tls(false), LOCAL, "localhost").1, b"http/1.1");
}

#[test]
fn what_is_no_pem_is_refused_with_its_file() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let files = write_pair(folder.path(), "a", "a.example");
    fs::write(&files.key, "text").expect("there is room");
    let pair = KeyPairSource::Files { cert: files.cert.clone().into(), key: files.key.into() };
    let refused = Tls::load(settings(pair), LOCAL, now()).expect_err("it is no key");
    assert!(refused.to_string().contains(&files.cert), "{refused}");
}
