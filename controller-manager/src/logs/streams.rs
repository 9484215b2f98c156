//! Streams that log lines are written to.

use std::io::{self, Write};
use std::mem;
use std::sync::{Mutex, PoisonError};

use tracing::Level;

use super::fields::Format;

/// A stream of lines.
pub(super) type Stream = Box<dyn Write + Send>;

/// Streams of lines: one for all, or one for information and one for errors.
pub(super) struct Streams {
    format: Format,
    error: Mutex<Stream>,
    info: Option<Mutex<Buffered>>,
}

impl Streams {
    /// Everything on standard error, or with `split` information on standard output, buffered up to that many bytes.
    pub(super) fn of_process(format: Format, split: Option<usize>) -> Self {
        Self::new(format, Box::new(io::stderr()), split.map(|size| (Box::new(io::stdout()) as Stream, size)))
    }

    pub(super) fn new(format: Format, error: Stream, info: Option<(Stream, usize)>) -> Self {
        let info = info.map(|(out, size)| Mutex::new(Buffered { out, size, buffer: Vec::new() }));
        Self { format, error: Mutex::new(error), info }
    }

    /// Writes a line. If the stream is closed, the line is lost, because there is no other place to report it.
    ///
    /// # Upstream
    /// In text a warning goes with the errors, in JSON with the information.
    pub(super) fn write(&self, level: Level, line: &str) {
        let is_info = match level {
            Level::ERROR => false,
            Level::WARN => self.format == Format::Json,
            Level::INFO | Level::DEBUG | Level::TRACE => true,
        };
        let written = match &self.info {
            Some(info) if is_info => info.lock().unwrap_or_else(PoisonError::into_inner).write(line.as_bytes()),
            Some(_) | None => {
                let mut error = self.error.lock().unwrap_or_else(PoisonError::into_inner);
                error.write_all(line.as_bytes()).and_then(|()| error.flush())
            }
        };
        drop(written);
    }

    /// Writes all buffers to their streams.
    pub(super) fn flush(&self) {
        if let Some(info) = &self.info {
            drop(info.lock().unwrap_or_else(PoisonError::into_inner).flush());
        }
    }
}

/// A buffer of whole lines.
struct Buffered {
    out: Stream,
    size: usize,
    buffer: Vec<u8>,
}

impl Buffered {
    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if self.buffer.len() + line.len() > self.size {
            self.flush()?;
        }
        if line.len() > self.size {
            self.out.write_all(line)?;
            return self.out.flush();
        }
        self.buffer.extend_from_slice(line);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        // A stream that is closed must not make the buffer grow.
        let lines = mem::take(&mut self.buffer);
        self.out.write_all(&lines)?;
        self.out.flush()
    }
}
