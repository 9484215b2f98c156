//! Changes of a file.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

/// Interval at which the file is read.
///
/// Polling needs no watch on a folder, works on every file system, and notices a `ConfigMap`, which switches a symbolic
/// link to a new folder, like any other change: the path leads to another inode.
const PERIOD: Duration = Duration::from_secs(2);

/// Changes with the content of a file, or with the file that a path leads to; `None` if it leads nowhere.
pub(super) type Fingerprint = Option<[i64; 5]>;

/// The fingerprint of the file that a path leads to.
pub(super) fn fingerprint(path: &Path) -> Fingerprint {
    let file = std::fs::metadata(path).ok()?;
    let (device, inode, size) = (file.dev().cast_signed(), file.ino().cast_signed(), file.size().cast_signed());
    Some([device, inode, size, file.mtime(), file.mtime_nsec()])
}

/// The changes of a file, by its fingerprint.
pub(super) struct FileChanges<F> {
    look: F,
    reported: Fingerprint,
}

impl<F: Fn() -> Fingerprint> FileChanges<F> {
    /// Changes from now on.
    pub(super) fn new(look: F) -> Self {
        let reported = look();
        Self { look, reported }
    }

    /// Waits for a change. One is reported when the file has stayed the same for a period, so that a file that is being
    /// written is not read in the middle.
    ///
    /// # Cancellation
    /// No change is lost.
    pub(super) async fn next(&mut self) {
        let mut before = self.reported;
        loop {
            tokio::time::sleep(PERIOD).await;
            let now = (self.look)();
            if now == before && now != self.reported {
                self.reported = now;
                return;
            }
            before = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;

    use super::*;

    fn at(number: i64) -> [i64; 5] {
        [number; 5]
    }

    async fn changes_within(changes: &mut FileChanges<impl Fn() -> Fingerprint>, time: Duration) -> bool {
        tokio::time::timeout(time, changes.next()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_reported_once_it_lasts() {
        let file = Cell::new(Some(at(1)));
        let mut changes = FileChanges::new(|| file.get());
        assert!(!changes_within(&mut changes, 10 * PERIOD).await);
        file.set(Some(at(2)));
        assert!(!changes_within(&mut changes, PERIOD + Duration::from_millis(1999)).await);
        assert!(changes_within(&mut changes, 2 * PERIOD).await);
        assert!(!changes_within(&mut changes, 10 * PERIOD).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_being_written_is_not_reported() {
        let number = Cell::new(0);
        let mut changes = FileChanges::new(|| {
            number.set(number.get() + 1);
            Some(at(number.get()))
        });
        assert!(!changes_within(&mut changes, 100 * PERIOD).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_and_back_is_none() {
        let file = Cell::new(Some(at(1)));
        let mut changes = FileChanges::new(|| file.get());
        file.set(Some(at(2)));
        assert!(!changes_within(&mut changes, PERIOD + Duration::from_millis(1)).await);
        file.set(Some(at(1)));
        assert!(!changes_within(&mut changes, 10 * PERIOD).await);
    }

    #[test]
    fn a_fingerprint_changes_with_the_content_and_with_the_target_of_a_link() {
        let folder = tempfile::tempdir().expect("there must be room for a folder");
        let path = |name: &str| folder.path().join(name);
        for name in ["first", "second"] {
            fs::create_dir(path(name)).expect("there must be room for a folder");
            fs::write(path(name).join("kcm.yaml"), "same").expect("there must be room for a file");
        }
        // As kubelet mounts a ConfigMap.
        std::os::unix::fs::symlink("first", path("..data")).expect("a link can be made");
        std::os::unix::fs::symlink("..data/kcm.yaml", path("kcm.yaml")).expect("a link can be made");
        let first = fingerprint(&path("kcm.yaml"));
        assert!(first.is_some());
        std::os::unix::fs::symlink("second", path("..data_tmp")).expect("a link can be made");
        fs::rename(path("..data_tmp"), path("..data")).expect("a link can be switched");
        let second = fingerprint(&path("kcm.yaml"));
        assert_ne!(first, second);
        fs::write(path("second").join("kcm.yaml"), "longer").expect("there must be room for a file");
        assert_ne!(second, fingerprint(&path("kcm.yaml")));
        assert_eq!(fingerprint(&path("none")), None);
    }
}
