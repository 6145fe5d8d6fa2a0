//! OpenAPI: v3 as an index and one document per group-version, v2 as one document for everything.
//!
//! Documents are made when they are asked for; v2 is large, so it is kept until a definition changes. Every
//! document has a tag that changes with it, by which clients keep their copies.

mod proto;
mod v2;

use crate::negotiate::Clause;
use crate::rest::{Answer, Document};
use crate::route::{Query, api_version};
use crate::server::Inner;
use crate::service::header_text;
use crate::{crd, discovery};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use orlop_clock::SignedDuration;
use orlop_kinds::catalog::catalog;
use serde_json::{Map, Value, json};
use std::sync::{Mutex, PoisonError};

const JSON: &str = "application/json";
/// The media types of OpenAPI v2 in protobuf; kubectl asks with an `@`, which no media type may have.
const V2_PROTOBUF: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
];
/// How long a document may be kept that is asked for by its tag.
const KEPT: SignedDuration = SignedDuration::from_hours(365 * 24);

/// The last v2 document.
#[derive(Default)]
pub(crate) struct Cache(Mutex<Option<V2>>);

#[derive(Clone)]
struct V2 {
    tag: String,
    json: Bytes,
    protobuf: Bytes,
}

/// `/openapi/v3` and below.
pub(crate) fn v3(server: &Inner, rest: &[&str], query: &Query, headers: &HeaderMap) -> Answer {
    let path = rest.join("/");
    let document = match rest {
        [] => {
            let index = index(server).to_string();
            let tag = format!("{:016X}", hash(index.bytes()));
            // The original says so, though it is JSON.
            return tagged("text/plain; charset=utf-8", index.into(), &tag, headers, Vec::new());
        }
        ["api", version] => catalog().openapi_v3("", version),
        ["apis", group, version] => {
            catalog().openapi_v3(group, version).or_else(|| crd::openapi(server, group, version))
        }
        _ => catalog().openapi_v3_root(&path),
    };
    let Some(document) = document else { return Answer::Empty(404) };
    if accepted(headers, &[JSON]).is_none() {
        return Answer::Empty(406);
    }
    let tag = document_tag(server, &path);
    let mut extra = vec![(header::VARY, HeaderValue::from_static("Accept"))];
    match query.get("hash") {
        None | Some("") => {}
        Some(asked) if asked == tag => {
            let until = server.clock.now().checked_add(KEPT).unwrap_or_else(|_| server.clock.now());
            let until = until.strftime("%a, %d %b %Y %H:%M:%S UTC").to_string();
            extra.push((header::CACHE_CONTROL, HeaderValue::from_static("public, immutable")));
            extra.extend(HeaderValue::from_str(&until).ok().map(|until| (header::EXPIRES, until)));
        }
        Some(_) => {
            let location = HeaderValue::from_str(&url(&path, &tag)).ok();
            extra.extend(location.map(|location| (header::LOCATION, location)));
            return Answer::Document(Document::new(301, "", Bytes::new(), extra));
        }
    }
    let mut bytes = document.to_string();
    bytes.push('\n');
    tagged(JSON, bytes.into(), &tag, headers, extra)
}

/// `/openapi/v2`.
pub(crate) fn v2(server: &Inner, headers: &HeaderMap) -> Answer {
    let types = [JSON, V2_PROTOBUF[0], V2_PROTOBUF[1]];
    let Some(media_type) = accepted(headers, &types) else { return Answer::Empty(406) };
    let document = server.openapi.get(server);
    let extra = vec![(header::VARY, HeaderValue::from_static("Accept"))];
    if media_type == JSON {
        return tagged(JSON, document.json, &document.tag, headers, extra);
    }
    tagged(V2_PROTOBUF[0], document.protobuf, &document.tag, headers, extra)
}

impl Cache {
    fn get(&self, server: &Inner) -> V2 {
        let tag = format!("{:016X}", hash(index(server).to_string().bytes()));
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(document) = kept.as_ref().filter(|document| document.tag == tag) {
            return document.clone();
        }
        let document = v2::document(server);
        let protobuf = proto::document(&document).into();
        let made = V2 { tag, json: document.to_string().into(), protobuf };
        *kept = Some(made.clone());
        made
    }
}

/// The first of some media types that a client accepts, in its order.
fn accepted<'a>(headers: &HeaderMap, types: &[&'a str]) -> Option<&'a str> {
    let accept = header_text(headers, header::ACCEPT).filter(|text| !text.is_empty()).unwrap_or("*/*");
    let mut clauses = accept.split(',').filter_map(Clause::parse);
    clauses.find_map(|clause| types.iter().find(|media_type| clause.covers(media_type)).copied())
}

/// An answer that a client need not fetch again while it has the same tag.
fn tagged(
    media_type: &'static str,
    bytes: Bytes,
    tag: &str,
    headers: &HeaderMap,
    mut extra: Vec<(HeaderName, HeaderValue)>,
) -> Answer {
    let tag = format!("\"{tag}\"");
    extra.extend(HeaderValue::from_str(&tag).ok().map(|tag| (header::ETAG, tag)));
    let known = header_text(headers, header::IF_NONE_MATCH).unwrap_or_default();
    if known.split(',').any(|known| known.trim() == tag || known.trim() == "*") {
        return Answer::Document(Document::new(304, "", Bytes::new(), extra));
    }
    Answer::Document(Document::new(200, media_type, bytes, extra))
}

fn url(path: &str, tag: &str) -> String {
    format!("/openapi/v3/{path}?hash={tag}")
}

/// The paths of the documents of v3, with their tags.
fn index(server: &Inner) -> Value {
    let mut paths = Map::new();
    let mut add = |path: String| {
        let url = url(&path, &document_tag(server, &path));
        paths.insert(path, json!({"serverRelativeURL": url}));
    };
    for path in [".well-known/openid-configuration", "api", "apis", "openid/v1/jwks", "version"] {
        add(path.to_owned());
    }
    for (group, versions) in discovery::groups(server) {
        if group.is_empty() {
            versions.iter().for_each(|version| add(format!("api/{version}")));
            continue;
        }
        if catalog().group(&group).is_some() {
            add(format!("apis/{group}"));
        }
        for version in &versions {
            add(format!("apis/{}", api_version(&group, version)));
        }
    }
    json!({"paths": paths})
}

/// What changes with a document: its path, this program and the definitions behind it.
fn document_tag(server: &Inner, path: &str) -> String {
    let program = concat!(env!("CARGO_PKG_VERSION"), "/");
    let state = match path.split('/').collect::<Vec<_>>().as_slice() {
        ["apis", group, version] => state(server, group, version),
        _ => 0,
    };
    format!("{:016X}{state:016X}", hash(program.bytes().chain(path.bytes())))
}

/// A number that changes with the definitions behind a document.
fn state(server: &Inner, group: &str, version: &str) -> u64 {
    let kinds = server.custom_kinds();
    let kinds = kinds.iter().filter(|kind| kind.group == group && kind.version == version);
    let states: Vec<u8> = kinds.flat_map(|kind| kind.schema_state().to_be_bytes()).collect();
    if states.is_empty() { 0 } else { hash(states) }
}

/// FNV-1a.
fn hash(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, step)
}
