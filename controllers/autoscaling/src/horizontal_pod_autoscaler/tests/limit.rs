//! How many requests are sent at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;

use crate::horizontal_pod_autoscaler::limit::Limit;

#[test]
fn a_limit_follows_its_setting_and_takes_back_what_is_free() {
    let setting = Arc::new(AtomicUsize::new(1));
    let read = Arc::clone(&setting);
    let limit = Limit::new(Arc::new(move || read.load(Ordering::Relaxed)));
    let acquire = || limit.acquire().now_or_never().flatten();
    let first = acquire();
    assert!(first.is_some() && acquire().is_none(), "one at once");
    setting.store(3, Ordering::Relaxed);
    let (second, third) = (acquire(), acquire());
    assert!(second.is_some() && third.is_some() && acquire().is_none(), "three at once");
    setting.store(1, Ordering::Relaxed);
    drop((first, second));
    assert!(acquire().is_none(), "the third is in use");
    drop(third);
    let again = acquire();
    assert!(again.is_some() && acquire().is_none(), "one at once again");
}
