//! Requests and watches through a SOCKS5 proxy.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use http_body_util::BodyExt;
use kcm_client::{ClientBuilder, Limits, Unreachable, UserAgent, connect, wait_for_api_server};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::connections::server::{Authority, Server, watch, who};

/// A SOCKS5 proxy, which requires this user and password if there are any.
struct Proxy {
    address: String,
    /// The targets of all connections.
    targets: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    async fn start(credentials: Option<(&'static str, &'static str)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let targets = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&targets);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let seen = Arc::clone(&seen);
                serving.spawn(async move { serve(stream, credentials, &seen).await });
            }
        });
        Self { address, targets, _tasks: tasks }
    }
}

async fn bytes(client: &mut TcpStream) -> Vec<u8> {
    let length = client.read_u8().await.unwrap();
    let mut bytes = vec![0; length.into()];
    client.read_exact(&mut bytes).await.unwrap();
    bytes
}

async fn serve(mut client: TcpStream, credentials: Option<(&str, &str)>, targets: &Mutex<Vec<String>>) {
    assert_eq!(client.read_u8().await.unwrap(), 5);
    let methods = bytes(&mut client).await;
    let method = if credentials.is_some() { 2 } else { 0 };
    if !methods.contains(&method) {
        return client.write_all(&[5, 0xff]).await.unwrap();
    }
    client.write_all(&[5, method]).await.unwrap();
    if let Some((user, password)) = credentials {
        assert_eq!(client.read_u8().await.unwrap(), 1);
        let known = bytes(&mut client).await == user.as_bytes();
        let known = bytes(&mut client).await == password.as_bytes() && known;
        client.write_all(&[1, u8::from(!known)]).await.unwrap();
        if !known {
            return;
        }
    }
    let mut request = [0; 4];
    client.read_exact(&mut request).await.unwrap();
    let host = match request {
        [5, 1, 0, 1] => {
            let mut address = [0; 4];
            client.read_exact(&mut address).await.unwrap();
            std::net::Ipv4Addr::from(address).to_string()
        }
        [5, 1, 0, 3] => String::from_utf8(bytes(&mut client).await).unwrap(),
        other => panic!("{other:?}"),
    };
    let target = format!("{host}:{}", client.read_u16().await.unwrap());
    targets.lock().unwrap().push(target.clone());
    let Ok(mut server) = TcpStream::connect(target).await else {
        return client.write_all(&[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
    };
    client.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 80]).await.unwrap();
    drop(copy_bidirectional(&mut client, &mut server).await);
}

fn through(server: &Server, url: &str) -> kube::Config {
    let mut config = server.config.clone();
    config.proxy_url = Some(url.parse().unwrap());
    config
}

#[tokio::test]
async fn requests_and_watches_go_through_the_proxy() {
    let authority = Authority::new();
    let (server, proxy) = (Server::start(&authority).await, Proxy::start(None).await);
    let config = through(&server, &format!("socks5://{}", proxy.address));
    let client = connect(&config).unwrap();
    assert_eq!(who(&client).await, "0 none");
    let mut open = watch(&client).await;
    assert!(open.frame().now_or_never().is_none(), "the watch stays open");
    assert_eq!(who(&client).await, "0 none");
    let target = config.cluster_url.authority().unwrap().to_string();
    assert_eq!(*proxy.targets.lock().unwrap(), vec![target; 2], "one for requests, one for watches");
}

#[tokio::test]
async fn user_and_password_of_the_address_are_sent_to_the_proxy() {
    let authority = Authority::new();
    let (server, proxy) = (Server::start(&authority).await, Proxy::start(Some(("user", "s@cret"))).await);
    for scheme in ["socks5", "socks5h"] {
        let config = through(&server, &format!("{scheme}://user:s%40cret@{}", proxy.address));
        assert_eq!(who(&connect(&config).unwrap()).await, "0 none");
    }
    // A proxy that wants no credentials takes none.
    let open = Proxy::start(None).await;
    let config = through(&server, &format!("socks5://user:secret@{}", open.address));
    assert_eq!(who(&connect(&config).unwrap()).await, "0 none");
}

#[tokio::test]
async fn a_name_is_resolved_by_the_proxy() {
    let authority = Authority::new();
    let (server, proxy) = (Server::start(&authority).await, Proxy::start(None).await);
    let mut config = through(&server, &format!("socks5://{}", proxy.address));
    let port = config.cluster_url.port_u16().unwrap();
    config.cluster_url = format!("https://localhost:{port}").parse().unwrap();
    config.tls_server_name = Some("127.0.0.1".to_owned());
    assert_eq!(who(&connect(&config).unwrap()).await, "0 none");
    assert_eq!(*proxy.targets.lock().unwrap(), [format!("localhost:{port}")]);
}

#[tokio::test]
async fn a_proxy_that_makes_no_connection_is_named_and_not_the_api_server() {
    let authority = Authority::new();
    let (server, strict) = (Server::start(&authority).await, Proxy::start(Some(("user", "secret"))).await);
    let open = Proxy::start(None).await;
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let credentials =
        "does not accept our credentials: put them into its address, as in socks5://USER:PASSWORD@HOST:PORT";
    let absent = format!("https://{nobody}").parse().unwrap();
    for (proxy, user_info, server_url, reason) in [
        (&strict, "", None, credentials),
        (&strict, "user:wrong@", None, credentials),
        (&open, "", Some(absent), "refuses to connect to the API server (connection refused)"),
    ] {
        let mut config = through(&server, &format!("socks5://{user_info}{}", proxy.address));
        config.cluster_url = server_url.unwrap_or(config.cluster_url);
        let agent = UserAgent::new("kube-controller-manager", "v1.37.2", "");
        let api = ClientBuilder::new(connect(&config).unwrap(), agent, Limits::UNLIMITED).client_for("probe");
        let error = wait_for_api_server(&api, "https://api.example", Duration::from_millis(900)).await.unwrap_err();
        assert!(matches!(error, Unreachable::Proxy { .. }), "{error:?}");
        assert_eq!(
            error.to_string(),
            format!(
                "the API server https://api.example cannot be reached through a proxy: the proxy socks5://{}/: {reason}",
                proxy.address
            )
        );
    }
    assert_eq!(server.connections(), 0);
}
