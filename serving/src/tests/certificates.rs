//! The metric and the check of the port's certificates.

use super::Port;

#[tokio::test]
async fn the_end_of_the_certificate_is_a_metric() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let path = |name: &str| folder.path().join(name);
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("it is a name");
    params.not_after = rcgen::date_time_ymd(2000, 1, 1);
    let key = rcgen::KeyPair::generate().expect("there is randomness");
    let certificate = params.self_signed(&key).expect("it can be signed");
    std::fs::write(path("a.crt"), certificate.pem()).expect("there is room");
    std::fs::write(path("a.key"), key.serialize_pem()).expect("there is room");
    let files = ["crt", "key"].map(|end| path(&format!("a.{end}")).display().to_string());
    let arguments = [
        format!("--tls-cert-file={}", files[0]),
        format!("--tls-private-key-file={}", files[1]),
        "--authorization-always-allow-paths=/metrics,/readyz,/readyz/*".to_owned(),
    ];
    let port = Port::start(&arguments.each_ref().map(String::as_str)).await;
    let page = port.client.get("/metrics").await.body;
    let left = page.lines().find_map(|line| line.strip_prefix("serving_certificate_ttl_seconds "));
    let left: f64 = left.and_then(|left| left.parse().ok()).unwrap_or_else(|| panic!("{page}"));
    // It ended long ago.
    assert!(left < 0.0, "{left}");
    assert_eq!(port.client.get("/readyz/serving-certificates").await.body, "ok");
}
