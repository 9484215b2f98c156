//! The list and watch requests as HTTP requests.

use http::header::{ACCEPT, ACCEPT_ENCODING};
use http::{HeaderValue, Request};
use kcm_api::{Resource, View};
use kube::client::Body;

use crate::list_options::ListOptions;
use crate::protocol::ListWatchRequest;

/// The beginning of the content type of protobuf responses; for watches, parameters follow.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

const WHOLE_OBJECTS: HeaderValue = HeaderValue::from_static("application/json");
// A kind without protobuf, as of a CRD or an aggregated server, comes as JSON.
const IN_PROTOBUF: HeaderValue = HeaderValue::from_static("application/vnd.kubernetes.protobuf,application/json");
// A server that cannot reduce objects to their metadata sends them whole, which is read just as well.
const LISTED_METADATA: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json");
const WATCHED_METADATA: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json");
const LISTED_METADATA_IN_PROTOBUF: HeaderValue = HeaderValue::from_static(
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
     application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
);
const WATCHED_METADATA_IN_PROTOBUF: HeaderValue = HeaderValue::from_static(
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
     application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
);

/// The encoding in which objects are requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Protobuf,
    Metadata,
    MetadataInProtobuf,
}

impl Form {
    pub(crate) const fn of<V: View>() -> Self {
        match (V::METADATA_ONLY, V::READS_PROTOBUF) {
            (true, true) => Self::MetadataInProtobuf,
            (true, false) => Self::Metadata,
            (false, true) => Self::Protobuf,
            (false, false) => Self::Json,
        }
    }
}

pub(crate) fn http_request(
    resource: &Resource,
    list_options: &ListOptions,
    form: Form,
    request: &ListWatchRequest,
) -> Request<Body> {
    let mut query = form_urlencoded::Serializer::new(String::new());
    if let Some(selector) = &list_options.label_selector {
        query.append_pair("labelSelector", &selector.to_string());
    }
    if let Some(selector) = &list_options.field_selector {
        query.append_pair("fieldSelector", selector);
    }
    match request {
        ListWatchRequest::Page { continue_token, limit } => {
            query.append_pair("limit", &limit.to_string());
            if let Some(token) = continue_token {
                query.append_pair("continue", token);
            }
        }
        ListWatchRequest::StreamingList { timeout } => {
            query.append_pair("watch", "1");
            query.append_pair("sendInitialEvents", "true");
            query.append_pair("resourceVersionMatch", "NotOlderThan");
            query.append_pair("allowWatchBookmarks", "true");
            query.append_pair("timeoutSeconds", &timeout.as_secs().to_string());
        }
        ListWatchRequest::Watch { from, timeout } => {
            query.append_pair("watch", "1");
            query.append_pair("resourceVersion", &from.to_string());
            query.append_pair("allowWatchBookmarks", "true");
            query.append_pair("timeoutSeconds", &timeout.as_secs().to_string());
        }
    }
    let uri = format!("{}?{}", resource.collection_path(list_options.namespace.as_deref()), query.finish());
    let is_watch = !matches!(request, ListWatchRequest::Page { .. });
    let accept = match (form, is_watch) {
        (Form::Json, _) => WHOLE_OBJECTS,
        (Form::Protobuf, _) => IN_PROTOBUF,
        (Form::Metadata, false) => LISTED_METADATA,
        (Form::Metadata, true) => WATCHED_METADATA,
        (Form::MetadataInProtobuf, false) => LISTED_METADATA_IN_PROTOBUF,
        (Form::MetadataInProtobuf, true) => WATCHED_METADATA_IN_PROTOBUF,
    };
    let mut http_request = Request::get(uri).header(ACCEPT, accept);
    if is_watch {
        // From 1.37 on a watch may be compressed as one gzip member per event, which common decoders end after one.
        http_request = http_request.header(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    http_request.body(Body::empty()).expect("a path of resource names and an encoded query must be a valid request")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const TIMEOUT: Duration = Duration::from_mins(5);

    fn sent(list_options: &ListOptions, form: Form, request: &ListWatchRequest) -> (String, String) {
        let replica_sets = Resource::namespaced("apps", "v1", "replicasets", "ReplicaSet");
        let request = http_request(&replica_sets, list_options, form, request);
        let accept = request.headers()[ACCEPT].to_str().unwrap().to_owned();
        (request.uri().to_string(), accept)
    }

    #[test]
    fn the_query_has_the_parameters_of_the_api() {
        let from = kcm_api::ResourceVersion::from(7);
        let token = Some("a/b=".to_owned());
        let rows = [
            (
                ListWatchRequest::StreamingList { timeout: TIMEOUT },
                "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=300",
            ),
            (
                ListWatchRequest::Watch { from, timeout: TIMEOUT },
                "watch=1&resourceVersion=7&allowWatchBookmarks=true&timeoutSeconds=300",
            ),
            (ListWatchRequest::Page { continue_token: None, limit: 500 }, "limit=500"),
            (ListWatchRequest::Page { continue_token: token, limit: 125 }, "limit=125&continue=a%2Fb%3D"),
        ];
        for (request, query) in rows {
            let (uri, accept) = sent(&ListOptions::default(), Form::Json, &request);
            assert_eq!(uri, format!("/apis/apps/v1/replicasets?{query}"));
            assert_eq!(accept, "application/json");
        }
    }

    #[test]
    fn the_query_has_the_list_options() {
        let list_options = ListOptions {
            namespace: Some("a".to_owned()),
            label_selector: Some("app in (x,y)".parse().unwrap()),
            field_selector: Some("metadata.name=b".to_owned()),
        };
        let (uri, _) = sent(&list_options, Form::Json, &ListWatchRequest::Page { continue_token: None, limit: 500 });
        assert_eq!(
            uri,
            "/apis/apps/v1/namespaces/a/replicasets?labelSelector=app+in+%28x%2Cy%29&fieldSelector=metadata.name%3Db&limit=500"
        );
    }

    #[test]
    fn protobuf_views_accept_json_too() {
        let (_, accept) =
            sent(&ListOptions::default(), Form::Protobuf, &ListWatchRequest::Page { continue_token: None, limit: 500 });
        assert_eq!(accept, "application/vnd.kubernetes.protobuf,application/json");
    }

    #[test]
    fn metadata_views_request_metadata_alone() {
        let list = ListWatchRequest::Page { continue_token: None, limit: 500 };
        let watch = ListWatchRequest::StreamingList { timeout: TIMEOUT };
        for (form, listed, watched) in [
            (Form::Metadata, LISTED_METADATA, WATCHED_METADATA),
            (Form::MetadataInProtobuf, LISTED_METADATA_IN_PROTOBUF, WATCHED_METADATA_IN_PROTOBUF),
        ] {
            assert_eq!(sent(&ListOptions::default(), form, &list).1, listed);
            assert_eq!(sent(&ListOptions::default(), form, &watch).1, watched);
        }
    }
}
