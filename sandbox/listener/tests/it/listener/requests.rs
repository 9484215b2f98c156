use bytes::Bytes;
use http::header;
use http_body_util::Full;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::listener::support::{Served, read_to_end, read_until, served};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

struct Bad {
    method: &'static str,
    path: &'static str,
    header: (&'static str, &'static str),
    body: &'static str,
    code: u16,
    reason: &'static str,
}

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test(start_paused = true)]
async fn bad_requests_are_answered_in_the_form_of_the_api() {
    let post = |header, body, code, reason| Bad { method: "POST", path: MAPS, header, body, code, reason };
    let get = |path, code, reason| Bad { method: "GET", path, header: JSON, body: "", code, reason };
    let rows = [
        post(JSON, "{\"a", 400, "BadRequest"),
        post(JSON, "hello", 400, "BadRequest"),
        post(JSON, "", 400, "BadRequest"),
        post(JSON, "[1]", 400, "BadRequest"),
        post(JSON, "\u{0}", 400, "BadRequest"),
        post(("content-type", "text/plain"), "{}", 415, "UnsupportedMediaType"),
        get("/apis/apps/v1/widgets", 404, "NotFound"),
        get("/api/v2/pods", 404, "NotFound"),
        get("/api/v1/namespaces/default/widgets/a", 404, "NotFound"),
        get("/api/v1/namespaces/default/configmaps/a", 404, "NotFound"),
        Bad { header: ("accept", "text/html"), ..get(MAPS, 406, "NotAcceptable") },
        Bad { method: "PUT", ..get(MAPS, 405, "MethodNotAllowed") },
        Bad { method: "BREW", ..get(MAPS, 405, "MethodNotAllowed") },
    ];
    let served = served().await;
    for mut http in served.both().await {
        for row in &rows {
            let request = served.request(row.method, row.path).header(row.header.0, row.header.1);
            let answer = http.ask(request.body(Full::from(row.body)).expect("it is a request")).await;
            let Bad { method, path, header, body, .. } = row;
            assert_eq!(answer.code, row.code, "{method} {path} {header:?} {body:?}: {}", answer.text);
            assert_eq!(answer.reason(), row.reason, "{method} {path} {header:?} {body:?}");
        }
        // As upstream has it for what is not of the API.
        let answer = http.get(&served, "/nonsense").await;
        assert_eq!((answer.code, answer.text.as_str()), (404, "404 page not found\n"));
    }
}

#[tokio::test(start_paused = true)]
async fn who_announces_too_much_is_answered_before_sending_it() {
    let served = served().await;
    let head = served.head("POST", MAPS);
    let mut stream = served.raw().await;
    stream.write_all(format!("{head}Content-Length: 99999999999\r\n\r\n").as_bytes()).await.expect("it listens");
    let said = read_until(&mut stream, "limit is 3145728").await;
    assert!(said.starts_with("HTTP/1.1 413 "), "{said}");
    served.assert_serves().await;
}

#[tokio::test(start_paused = true)]
async fn clients_that_send_it_all_before_they_read_get_their_answer_too() {
    let served = served().await;
    for head in [served.head("POST", MAPS), "POST /api HTTP/1.1\r\nHost: localhost\r\n".to_owned()] {
        let mut stream = served.raw().await;
        let length = 8 << 20;
        stream.write_all(format!("{head}Content-Length: {length}\r\n\r\n").as_bytes()).await.expect("it listens");
        stream.write_all(&vec![b'x'; length]).await.expect("it is all taken");
        let said = read_until(&mut stream, "\"status\":\"Failure\"").await;
        assert!(said.starts_with("HTTP/1.1 413 ") || said.starts_with("HTTP/1.1 401 "), "{said}");
        assert!(said.to_lowercase().contains("connection: close"), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_without_an_announced_length_are_read_up_to_the_limit() {
    let served = served().await;
    let mut stream = served.raw().await;
    let head = served.head("POST", MAPS);
    stream.write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes()).await.expect("it listens");
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let (mut reads, mut writes) = tokio::io::split(stream);
    let flood = async {
        // It would go on for ever; that it ends is the doing of the server.
        while writes.write_all(chunk.as_bytes()).await.is_ok() {}
    };
    let mut answer = [0; 12];
    tokio::select! {
        () = flood => panic!("the answer must come before the end"),
        read = reads.read_exact(&mut answer) => drop(read.expect("it is answered")),
    }
    assert_eq!(&answer, b"HTTP/1.1 413");
    served.assert_serves().await;
}

#[tokio::test(start_paused = true)]
async fn large_bodies_are_refused_over_http2() {
    let served = served().await;
    let mut http = served.http2().await;
    let request = served.request("POST", MAPS).header(header::CONTENT_TYPE, "application/json");
    let body = Full::new(Bytes::from(vec![b'x'; 4 << 20]));
    let answer = http.ask(request.body(body).expect("it is a request")).await;
    assert_eq!((answer.code, answer.reason().as_str()), (413, "RequestEntityTooLarge"));
}

#[tokio::test(start_paused = true)]
async fn floods_of_headers_are_refused() {
    let served = served().await;
    let head = served.head("GET", "/api");
    for flood in [format!("X: {}\r\n", "x".repeat(1 << 20)), "X: x\r\n".repeat(1000)] {
        let mut stream = served.raw().await;
        // The response may arrive before everything has been sent.
        drop(stream.write_all(format!("{head}{flood}\r\n").as_bytes()).await);
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.expect("it is answered");
        assert_eq!(&answer, b"HTTP/1.1 431");
    }
    let mut http = served.http2().await;
    let request = served.request("GET", "/api").header("x", "x".repeat(100_000));
    assert_eq!(http.ask(request.body(Full::default()).expect("it is a request")).await.code, 431);
    served.assert_serves().await;
}

#[tokio::test(start_paused = true)]
async fn plain_http_is_told_to_use_https() {
    let served = served().await;
    for request in
        ["GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST /api HTTP/1.0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
    {
        let mut stream = served.tcp().await;
        stream.write_all(request.as_bytes()).await.expect("it listens");
        stream.shutdown().await.expect("it listens");
        let said = read_to_end(&mut stream).await;
        assert!(said.starts_with("HTTP/1.0 400 Bad Request\r\n"), "{said}");
        assert!(said.ends_with("Client sent an HTTP request to an HTTPS server.\n"), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn garbage_ends_only_its_own_connection() {
    let served = served().await;
    let garbage: [&[u8]; 5] = [
        b"",
        b"\x00\x01\x02\x03",
        &[0xff; 4096],
        // A handshake record that is none.
        b"\x16\x03\x01\x00\x05hello",
        // A record that is longer than allowed.
        b"\x16\x03\x01\xff\xff\x01\xff\xff\xff",
    ];
    for bytes in garbage {
        let mut stream = served.tcp().await;
        stream.write_all(bytes).await.expect("it listens");
        stream.shutdown().await.expect("it listens");
        read_to_end(&mut stream).await;
    }
    served.assert_serves().await;
}

#[tokio::test(start_paused = true)]
async fn requests_that_two_servers_could_read_in_two_ways_are_refused() {
    let served = served().await;
    let rows = [
        ("two lengths", "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"),
        ("a length that is no number", "Content-Length: 0x4\r\n\r\nabcd"),
        ("a coding that is not known", "Transfer-Encoding: gzip\r\n\r\nabcd"),
        ("a space before the colon", "Content-Length : 4\r\n\r\nabcd"),
        ("a chunk size that overflows", "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"),
    ];
    for (name, rest) in rows {
        let said = served.said(format!("{}{rest}", served.head("POST", MAPS)).as_bytes()).await;
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 400"), "{name}: {said}");
    }
    assert_not_smuggled(&served).await;
}

/// Length and chunks at once: the chunks count, and the connection ends, so that nothing is left to be misread.
async fn assert_not_smuggled(served: &Served) {
    let head = served.head("GET", "/api");
    let hidden = "DELETE /api/v1/namespaces/default HTTP/1.1\r\nHost: x\r\n\r\n";
    let request = format!("{head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}");
    drop(served.said(request.as_bytes()).await);
    let deletes = served.sandbox.requests().into_iter().filter(|request| request.method == "DELETE").count();
    assert_eq!(deletes, 0);
}
