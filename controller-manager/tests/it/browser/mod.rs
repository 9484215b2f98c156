//! Chromium without a window, driven over two pipes by the protocol of its developer tools.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

/// The names under which Chromium is installed.
const PROGRAMS: &[&str] = &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Seconds after which a browser that hangs is ended; only a test that fails waits for so long.
const PATIENCE: &str = "120";

/// A page in a browser, which ends when this is dropped.
pub(crate) struct Browser {
    child: Child,
    requests: File,
    answers: BufReader<File>,
    id: u64,
    session: Option<String>,
    /// Errors of the page's console.
    pub(crate) errors: Vec<String>,
}

/// The browser that is installed.
pub(crate) fn installed() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&folders).flat_map(|folder| PROGRAMS.iter().map(move |name| folder.join(name)));
    found.into_iter().find(|path| path.is_file())
}

impl Browser {
    /// Opens a page; files of the browser are kept in `folder`.
    pub(crate) fn open(program: &Path, folder: &Path, url: &str) -> Self {
        let pipe = |name: &str| {
            let path = folder.join(name);
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("pipes can be made");
            path
        };
        let (requests, answers) = (pipe("requests"), pipe("answers"));
        // The protocol is spoken over the descriptors 3 and 4.
        let child = Command::new("sh")
            .args(["-c", "exec timeout \"$0\" \"$@\" 3<\"$REQUESTS\" 4>\"$ANSWERS\"", PATIENCE])
            .arg(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--ignore-certificate-errors"])
            .args(["--remote-debugging-pipe", "--no-first-run", "--disable-background-networking"])
            .arg(format!("--user-data-dir={}", folder.join("profile").display()))
            .envs([("REQUESTS", &requests), ("ANSWERS", &answers)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("there is a shell");
        let requests = File::options().write(true).open(requests).expect("the shell opens it");
        let answers = BufReader::new(File::open(answers).expect("the shell opens it"));
        let mut browser = Self { child, requests, answers, id: 0, session: None, errors: Vec::new() };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", &attach);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Log.enable", "Runtime.enable", "Page.enable"] {
            browser.call(domain, &json!({}));
        }
        browser.call("Page.navigate", &json!({ "url": url }));
        browser
    }

    /// Calls a method of the protocol.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.id += 1;
        let mut request = json!({ "id": self.id, "method": method, "params": params });
        if let Some(session) = &self.session {
            request["sessionId"] = session.as_str().into();
        }
        self.requests.write_all(format!("{request}\0").as_bytes()).expect("the browser runs");
        loop {
            let answer = self.next();
            if answer["id"] == self.id {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
        }
    }

    fn next(&mut self) -> Value {
        let mut message = Vec::new();
        self.answers.read_until(0, &mut message).expect("the browser runs");
        assert_eq!(message.pop(), Some(0), "the browser ended");
        let message: Value = serde_json::from_slice(&message).expect("it speaks JSON");
        let entry = &message["params"]["entry"];
        if message["method"] == "Log.entryAdded" && entry["level"] == "error" {
            self.errors.push(entry["text"].to_string());
        }
        if message["method"] == "Runtime.exceptionThrown" {
            self.errors.push(message["params"]["exceptionDetails"].to_string());
        }
        message
    }

    /// The value of an expression in the page, a promise awaited.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", &params);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until the page shows a text.
    pub(crate) fn shows(&mut self, text: &str) {
        let wait = "new Promise((resolve) => { const look = () => document.body?.innerText.includes(TEXT) ? resolve(true) \
                    : setTimeout(look, 50); look(); })";
        self.evaluate(&wait.replace("TEXT", &json!(text).to_string()));
    }

    /// Writes a picture of the whole page to a file.
    pub(crate) fn picture(&mut self, file: &Path) {
        use base64::Engine as _;
        let picture = self.call("Page.captureScreenshot", &json!({ "format": "png", "captureBeyondViewport": true }));
        let data = picture["data"].as_str().expect("it is a picture");
        let data = base64::engine::general_purpose::STANDARD.decode(data).expect("it is base64");
        std::fs::write(file, data).expect("the folder is there");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // `timeout` ends the browser with itself.
        if let Some(id) = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ended = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        }
        drop(self.child.wait());
    }
}
