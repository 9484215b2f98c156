//! The heap profile of this process' allocator.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::fd::AsRawFd as _;

use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, memfd_create};
use tikv_jemalloc_ctl::{profiling, raw};

/// A file in memory that jemalloc writes its heap profile to: the root file system of a container may be read-only.
pub(super) struct HeapDump {
    file: Mutex<File>,
    /// The path of the file for this process. jemalloc takes paths that live for ever.
    path: &'static [u8],
}

impl HeapDump {
    /// # Errors
    /// If the kernel refuses the file.
    pub(super) fn new() -> std::io::Result<Self> {
        let file = File::from(memfd_create("heap-profile", MemfdFlags::CLOEXEC)?);
        let path = format!("/proc/self/fd/{}\0", file.as_raw_fd());
        Ok(Self { file: Mutex::new(file), path: path.leak().as_bytes() })
    }

    /// Returns a dump of jemalloc's samples.
    ///
    /// # Errors
    /// If it samples nothing.
    pub(super) fn write(&self) -> Result<Vec<u8>, String> {
        if !profiling::prof::read().unwrap_or(false) {
            let how = "start the manager with MALLOC_CONF=prof:true in its environment";
            return Err(format!("jemalloc samples no allocations: {how}"));
        }
        let mut file = self.file.lock();
        raw::write_str(b"prof.dump\0", self.path)
            .map_err(|error| format!("jemalloc wrote no heap profile: {error}"))?;
        let mut dump = Vec::new();
        let read = file.rewind().and_then(|()| file.read_to_end(&mut dump)).and_then(|_| file.set_len(0));
        read.map_err(|error| format!("cannot read the heap profile of jemalloc: {error}"))?;
        Ok(dump)
    }
}
