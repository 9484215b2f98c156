//! An API server that never answers.

use std::path::Path;

use tokio::net::TcpListener;

/// Returns an API server that accepts connections and never answers, and the flags of a port that sends its reviews there.
pub(super) async fn silent_api_server(folder: &Path) -> (TcpListener, [String; 2]) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let kubeconfig = format!(
        "{{apiVersion: v1, kind: Config, current-context: a, contexts: [{{name: a, context: {{cluster: a, user: a}}}}], \
         clusters: [{{name: a, cluster: {{server: \"http://{address}\"}}}}], users: [{{name: a, user: {{token: a}}}}]}}"
    );
    let path = folder.join("kubeconfig");
    std::fs::write(&path, kubeconfig).expect("there is room");
    let flags = ["--authentication-skip-lookup".to_owned(), format!("--authorization-kubeconfig={}", path.display())];
    (listener, flags)
}
