//! The order of the ports of slices. The hashes are those that go-spew and `hash/fnv` give for the types of `k8s.io/api`.

use crate::shared::slices::{EndpointPort, port_hash, sort_ports};

fn port(name: &str, protocol: &str, number: i32) -> EndpointPort {
    EndpointPort {
        name: Some(name.to_owned()),
        protocol: Some(protocol.to_owned()),
        port: Some(number),
        app_protocol: None,
    }
}

#[test]
fn ports_have_the_hash_that_they_have_in_go() {
    let dns = EndpointPort { app_protocol: Some("example.com/dns".to_owned()), ..port("dns", "UDP", 53) };
    for (port, expected) in [
        (port("http", "TCP", 80), 0xb6c4_d325_122a_5ba6_f795_b0bb_ffce_bb6f),
        (port("https", "TCP", 443), 0x5085_2f61_0b5f_bbf5_1290_25d3_5e50_2185),
        (port("", "TCP", 8080), 0x3b28_a02d_cead_55ad_0b93_f001_4e19_4ac7),
        (dns, 0xe4c2_7ede_8140_7a76_ced7_ccdf_efc3_acce),
        (EndpointPort::default(), 0xad86_6eb7_cd51_62a9_e204_34eb_d9de_eacd),
    ] {
        assert_eq!(port_hash(&port), expected, "{port:?}");
    }
}

#[test]
fn ports_are_sorted_by_their_hash() {
    let (http, https) = (port("http", "TCP", 80), port("https", "TCP", 443));
    for mut ports in [[http.clone(), https.clone()], [https.clone(), http.clone()]] {
        sort_ports(&mut ports);
        assert_eq!(ports, [https.clone(), http.clone()]);
    }
}
