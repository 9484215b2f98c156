//! Rules that hold for any body of a response, the body of the fuzz target in `fuzz/`, which `cargo test` calls with seeded
//! mutations.

use kcm_api::{PartialObjectMeta, protobuf};

use crate::envelope::{Bookmark, Object, Page, status_of_body, status_of_event};

/// A page of a list, a bookmark or a status: it is read within memory that its length bounds, or refused.
pub(crate) fn envelopes(bytes: &[u8]) {
    if let Ok(page) = Page::read(bytes) {
        assert!(!page.metadata.resource_version.is_unset(), "a list without a version reads as an empty cluster");
        let size = |item: &Object<'_>| match item {
            Object::Json(json) => json.len(),
            Object::Protobuf(message) => message.len(),
        };
        assert!(page.items.iter().map(size).sum::<usize>() <= bytes.len());
        // An item of protobuf may be empty, but has a tag and a length.
        assert!(2 * page.items.len() <= bytes.len());
        for item in page.items {
            drop(item.decode::<PartialObjectMeta>());
        }
    }
    let json = std::str::from_utf8(bytes).ok().map(Object::Json);
    let message = protobuf::unwrap(bytes).ok().map(Object::Protobuf);
    for object in [json, message, Some(Object::Protobuf(bytes))].into_iter().flatten() {
        if let Ok(bookmark) = Bookmark::read(object) {
            assert!(!bookmark.version.is_unset(), "{object:?}");
        }
        if let Ok(status) = status_of_event(object) {
            check(&status, bytes);
        }
    }
    if let Some(status) = status_of_body(bytes) {
        check(&status, bytes);
    }
}

/// Checks that a status has no text that was not sent.
fn check(status: &kcm_api::Status, bytes: &[u8]) {
    let causes = status.details.causes.iter().flat_map(|it| [&it.reason, &it.message, &it.field]);
    let texts = [&status.reason, &status.message, &status.details.name].into_iter().chain(causes);
    assert!(texts.map(String::len).sum::<usize>() <= bytes.len(), "{status:?}");
}
