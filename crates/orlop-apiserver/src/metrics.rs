//! Metrics: how many requests were answered, and how; in the text format of Prometheus.

use crate::discovery::GIT_VERSION;
use crate::health;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

/// The media type of the text format.
pub(crate) const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

/// Counters of a server.
#[derive(Default)]
pub(crate) struct Metrics(Mutex<BTreeMap<(String, u16), u64>>);

impl Metrics {
    /// Counts an answered request.
    pub(crate) fn count(&self, verb: &str, code: u16) {
        let mut requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((verb.to_uppercase(), code)).or_default() += 1;
    }

    /// `/metrics`.
    pub(crate) fn text(&self) -> String {
        let mut out = String::from(
            "# HELP apiserver_request_total Counter of apiserver requests broken out for each verb and HTTP response code.\n\
             # TYPE apiserver_request_total counter\n",
        );
        let requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for ((verb, code), count) in requests.iter() {
            let _ = writeln!(out, "apiserver_request_total{{code=\"{code}\",verb=\"{verb}\"}} {count}");
        }
        out.push_str(
            "# HELP kubernetes_build_info A metric with a constant '1' value, labeled by the version that is emulated.\n\
             # TYPE kubernetes_build_info gauge\n",
        );
        let _ = writeln!(out, "kubernetes_build_info{{git_version=\"{GIT_VERSION}\"}} 1");
        out
    }
}

/// `/metrics/slis`.
pub(crate) fn slis() -> String {
    let mut out = String::from(
        "# HELP kubernetes_healthcheck This metric records the result of a single healthcheck.\n\
         # TYPE kubernetes_healthcheck gauge\n",
    );
    for endpoint in health::ENDPOINTS {
        for check in health::checks(endpoint) {
            let _ = writeln!(out, "kubernetes_healthcheck{{name=\"{check}\",type=\"{endpoint}\"}} 1");
        }
    }
    out
}
