//! The token of a file, which is read again and again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::HeaderValue;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Time for which a token is used before the file is read again.
///
/// # Upstream
/// `NewCachedFileTokenSource`: a minute, less ten seconds.
const PERIOD: Duration = Duration::from_secs(50);

/// A token file.
///
/// # Guarantees
/// A token that has been read is used until the file has another: a file that is missing or empty for a while changes
/// nothing.
pub(in super::super) struct TokenFile {
    path: PathBuf,
    state: Mutex<State>,
    /// Held while the file is read, so that one reading serves all requests.
    reading: tokio::sync::Mutex<()>,
}

struct State {
    header: HeaderValue,
    read_next: Instant,
}

/// A token file without a token.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum TokenFileError {
    #[error("the token file {path:?} cannot be read: check its path and its permissions")]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the token file {0:?} is empty")]
    Empty(PathBuf),
    #[error("the token in the file {0:?} holds a line break or another control character")]
    Malformed(PathBuf),
}

impl TokenFile {
    /// Reads the file. If that fails, `fallback` is used until it succeeds.
    pub(super) fn open(path: PathBuf, fallback: Option<HeaderValue>) -> Result<Self, TokenFileError> {
        let header = match (token(&path, std::fs::read_to_string(&path)), fallback) {
            (Ok(header), _) => header,
            (Err(error), Some(header)) => {
                let error: &(dyn std::error::Error + 'static) = &error;
                tracing::warn!(error, "Cannot read the token file; using the token beside it");
                header
            }
            (Err(error), None) => return Err(error),
        };
        let state = State { header, read_next: Instant::now() + PERIOD };
        Ok(Self { path, state: Mutex::new(state), reading: tokio::sync::Mutex::default() })
    }

    /// The token as a header, read again if it is time.
    pub(super) async fn current(&self) -> HeaderValue {
        if let Some(header) = self.recent() {
            return header;
        }
        let _reading = self.reading.lock().await;
        if let Some(header) = self.recent() {
            return header;
        }
        let read = token(&self.path, tokio::fs::read_to_string(&self.path).await);
        let mut state = self.state.lock();
        state.read_next = Instant::now() + PERIOD;
        match read {
            Ok(header) => state.header = header,
            Err(error) => {
                let error: &(dyn std::error::Error + 'static) = &error;
                tracing::warn!(error, "Cannot read a token again; the last one is used");
            }
        }
        state.header.clone()
    }

    /// Reads the file for the next request.
    pub(super) fn refused(&self) {
        self.state.lock().read_next = Instant::now();
    }

    fn recent(&self) -> Option<HeaderValue> {
        let state = self.state.lock();
        (Instant::now() < state.read_next).then(|| state.header.clone())
    }
}

fn token(path: &Path, read: std::io::Result<String>) -> Result<HeaderValue, TokenFileError> {
    let text = read.map_err(|source| TokenFileError::Unreadable { path: path.to_owned(), source })?;
    let token = text.trim();
    if token.is_empty() {
        return Err(TokenFileError::Empty(path.to_owned()));
    }
    super::bearer(token).map_err(|_| TokenFileError::Malformed(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Level, Metadata, Subscriber};

    use super::*;

    /// A subscriber that counts warnings.
    #[derive(Clone, Default)]
    struct Warnings(Arc<AtomicUsize>);

    impl Subscriber for Warnings {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            *metadata.level() == Level::WARN
        }

        fn event(&self, _: &Event<'_>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    struct File(tempfile::TempDir);

    impl File {
        fn with(text: &str) -> Self {
            let file = Self(tempfile::tempdir().unwrap());
            std::fs::write(file.path(), text).unwrap();
            file
        }

        fn path(&self) -> PathBuf {
            self.0.path().join("token")
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_read_again_within_a_minute_and_kept_where_the_file_has_none() {
        let file = File::with("one\n");
        let source = TokenFile::open(file.path(), None).unwrap();
        std::fs::write(file.path(), "two").unwrap();
        assert_eq!(source.current().await, "Bearer one");
        tokio::time::sleep(PERIOD).await;
        assert_eq!(source.current().await, "Bearer two");
        for kept in ["", " \n", "a\nb"] {
            std::fs::write(file.path(), kept).unwrap();
            tokio::time::sleep(PERIOD).await;
            assert_eq!(source.current().await, "Bearer two", "{kept:?}");
        }
        std::fs::remove_file(file.path()).unwrap();
        tokio::time::sleep(PERIOD).await;
        assert_eq!(source.current().await, "Bearer two");
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_was_refused_is_read_again_at_once() {
        let file = File::with("one");
        let source = TokenFile::open(file.path(), None).unwrap();
        std::fs::write(file.path(), "two").unwrap();
        source.refused();
        assert_eq!(source.current().await, "Bearer two");
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_that_is_replaced_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let mount = |data: &str, token: &str| {
            std::fs::create_dir(folder.path().join(data)).unwrap();
            std::fs::write(folder.path().join(data).join("token"), token).unwrap();
            std::os::unix::fs::symlink(data, folder.path().join("..tmp")).unwrap();
            std::fs::rename(folder.path().join("..tmp"), folder.path().join("..data")).unwrap();
        };
        mount("..1", "one");
        std::os::unix::fs::symlink("..data/token", folder.path().join("token")).unwrap();
        let source = TokenFile::open(folder.path().join("token"), None).unwrap();
        mount("..2", "two");
        tokio::time::sleep(PERIOD).await;
        assert_eq!(source.current().await, "Bearer two");
    }

    #[tokio::test]
    async fn the_token_beside_a_file_is_used_until_the_file_can_be_read() {
        let file = File::with("one");
        let fallback = HeaderValue::from_static("Bearer inline");
        assert_eq!(TokenFile::open(file.path(), Some(fallback.clone())).unwrap().current().await, "Bearer one");
        std::fs::remove_file(file.path()).unwrap();
        let warnings = Warnings::default();
        let open = || TokenFile::open(file.path(), Some(fallback)).unwrap();
        let source = tracing::subscriber::with_default(warnings.clone(), open);
        assert_eq!(warnings.0.load(Ordering::Relaxed), 1, "the file of the kubeconfig is not used");
        assert_eq!(source.current().await, "Bearer inline");
        let Err(error) = TokenFile::open(file.path(), None) else { panic!("there is no token") };
        assert!(error.to_string().ends_with("cannot be read: check its path and its permissions"), "{error}");
    }
}
