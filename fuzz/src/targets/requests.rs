//! Requests: their paths, their selectors, and all of them.

use super::{Form, Target, field_words, lines, words};
use crate::server::{Ask, Server, populated};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// Paths and queries of requests that only read.
pub(super) struct Paths(Server);

impl Paths {
    pub(super) fn new() -> Self {
        Self(Server::new(populated()))
    }
}

impl Target for Paths {
    fn form(&self) -> Form {
        Form::Bytes
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        lines(include_str!("../../seeds/paths.txt"))
    }

    fn words(&self) -> Vec<String> {
        words(
            "/ // /api /apis /api/v1 /apis/apps/v1 /namespaces /namespaces/default /pods /deployments /things /status /scale /log /exec /proxy /watch /x .. . %2F %00 %ff %25 ? & = ; # watch=1 limit=1 limit=-1 continue=x resourceVersion=0 resourceVersion=99999 resourceVersionMatch=Exact sendInitialEvents=true timeoutSeconds=1 pretty=true labelSelector=a fieldSelector=metadata.name%3Dx allowWatchBookmarks=true /openapi/v2 /openapi/v3 /version /healthz /livez /readyz /metrics verbose",
        )
    }

    fn run(&mut self, input: &[u8]) -> Result<String, String> {
        self.0.reset()?;
        let path = String::from_utf8_lossy(input);
        let method = if path.len().is_multiple_of(8) { "HEAD" } else { "GET" };
        Ok(self.0.ask(&Ask::new(method, &path, "", ""))?.class())
    }
}

/// Selectors by labels and by fields, each input as both.
pub(super) struct Selectors(Server);

impl Selectors {
    pub(super) fn new() -> Self {
        Self(Server::new(populated()))
    }
}

impl Target for Selectors {
    fn form(&self) -> Form {
        Form::Bytes
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        lines(include_str!("../../seeds/selectors.txt"))
    }

    fn words(&self) -> Vec<String> {
        words(r"a b app x = == != in notin ( ) , ! > < exists a.b/c metadata.name metadata.namespace spec.nodeName status.phase involvedObject.kind \ \, \= '' gt lt 1 -1")
            .into_iter()
            .chain([" ".to_owned()])
            .collect()
    }

    fn run(&mut self, input: &[u8]) -> Result<String, String> {
        self.0.reset()?;
        let selector = utf8_percent_encode(&String::from_utf8_lossy(input), NON_ALPHANUMERIC).to_string();
        let mut ask = |path: String| self.0.ask(&Ask::new("GET", &path, "", ""));
        let labels = ask(format!("/api/v1/pods?labelSelector={selector}"))?;
        let fields = ask(format!("/api/v1/namespaces/default/pods?fieldSelector={selector}"))?;
        Ok(format!("{} {}", fields.class(), labels.class()))
    }
}

/// Whole requests, several in a row: `[{"method", "path", "headers": {}, "body"}]`.
pub(super) struct Requests(Server);

/// Requests of one input beyond these are not sent.
const REQUESTS_MAX: usize = 6;

impl Requests {
    pub(super) fn new() -> Self {
        Self(Server::new(populated()))
    }
}

impl Target for Requests {
    fn form(&self) -> Form {
        Form::Tree
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        lines(include_str!("../../seeds/requests.jsonl"))
    }

    fn words(&self) -> Vec<String> {
        let mut all = words(
            "GET POST PUT PATCH DELETE HEAD OPTIONS method path headers body content-type accept application/json application/yaml application/vnd.kubernetes.protobuf application/json-patch+json application/merge-patch+json application/strategic-merge-patch+json application/apply-patch+yaml application/json;as=Table;v=v1;g=meta.k8s.io application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io accept-encoding gzip impersonate-user impersonate-group authorization ?dryRun=All ?fieldValidation=Strict ?fieldManager=m ?force=true ?propagationPolicy=Foreground ?propagationPolicy=Orphan ?gracePeriodSeconds=0 ?watch=1 ?limit=1 /api/v1/namespaces/default/pods /api/v1/namespaces/default/pods/x /status /scale /eviction /binding /token /finalize /ephemeralcontainers /resize /apis/example.com/v1/namespaces/default/things/x",
        );
        all.extend(field_words());
        all
    }

    fn run(&mut self, input: &[u8]) -> Result<String, String> {
        let tree: Value = serde_json::from_slice(input).unwrap_or_default();
        self.0.reset()?;
        let mut last = "nothing".to_owned();
        for ask in tree.as_array().into_iter().flatten().take(REQUESTS_MAX) {
            let reply = self.0.ask(&Ask::read(ask))?;
            last = reply.class();
        }
        Ok(last)
    }
}
