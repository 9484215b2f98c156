//! Bytes from the network that are not as they should be: the fuzz targets, run with seeded mutations.

#[path = "../../../fuzz/mutations.rs"]
mod mutate;
#[path = "../targets/mod.rs"]
mod targets;

use mutate::mutate;

#[test]
fn no_object_makes_a_view_panic_or_grow_beyond_its_length() {
    let seeds: [&[u8]; 5] = [
        include_bytes!("../../fixtures/pod_recorded.pb"),
        include_bytes!("../../fixtures/pod.json"),
        include_bytes!("../../fixtures/deployment.json"),
        include_bytes!("../../fixtures/replica_set.json"),
        br#"{"metadata":{"name":"a","ownerReferences":[{"uid":"u","controller":true}]},"spec":{"ports":[{"port":80,"targetPort":"http"}],"schedule":"* * * * *","hard":{"cpu":"1500m"},"minAvailable":"50%"}}"#,
    ];
    mutate(&seeds, 3_000, targets::views);
}

#[test]
fn no_document_makes_an_edit_change_something_else() {
    let seeds: [&[u8]; 4] = [
        include_bytes!("../../fixtures/pod.json"),
        include_bytes!("../../fixtures/deployment.json"),
        br#"{"metadata":{"annotations":{"a":"b","a":null}},"spec":{"a":[1,{"b":"\u0041\\"}]}}"#,
        br#" { "metadata" : null , "metadata" : { } } "#,
    ];
    mutate(&seeds, 5_000, targets::document);
}

#[test]
fn no_text_makes_a_label_selector_that_reads_as_another() {
    let seeds: [&[u8]; 4] =
        [b"a=b,c!=d,e in (x,y),f notin (z),g,!h,i>5", b"in in (in,notin)", b"a in (,b),c=,d==x", b"k/a.b-c_d<7"];
    mutate(&seeds, 20_000, targets::selector);
}
