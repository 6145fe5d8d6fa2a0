//! Where a webhook is, as its `clientConfig` says.

use crate::object;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The port of a webhook that names none.
const DEFAULT_PORT: u16 = 443;

/// A service as a webhook names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServiceRef {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) port: u16,
}

/// The place of a webhook and whom to trust there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// Host and, if it was given, port.
    authority: String,
    /// The host alone, as certificates name it.
    host: String,
    port: u16,
    path: String,
    /// Certificates in PEM.
    roots: Vec<u8>,
    service: Option<ServiceRef>,
}

impl Endpoint {
    /// Reads a `clientConfig`.
    pub(crate) fn parse(config: &Value) -> Result<Self, String> {
        let roots = STANDARD.decode(object::text(config, "caBundle")).unwrap_or_default();
        if let Some(service) = config.get("service").filter(|service| service.is_object()) {
            let text = |field: &str| object::text(service, field).to_owned();
            let port = service.get("port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
            let port = port.filter(|port| *port != 0).unwrap_or(DEFAULT_PORT);
            let host = format!("{}.{}.svc", text("name"), text("namespace"));
            return Ok(Self {
                authority: format!("{host}:{port}"),
                host,
                port,
                path: clean(object::text(service, "path")),
                roots,
                service: Some(ServiceRef { namespace: text("namespace"), name: text("name"), port }),
            });
        }
        let url = object::text(config, "url");
        if url.is_empty() {
            return Err("webhook configuration must have either service or URL".to_owned());
        }
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => {
                let port = if port.is_empty() { Ok(DEFAULT_PORT) } else { port.parse() };
                (host, port.map_err(|_| format!("invalid port in \"{url}\""))?)
            }
            _ => (authority, DEFAULT_PORT),
        };
        Ok(Self {
            authority: authority.to_owned(),
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port,
            path: clean(path),
            roots,
            service: None,
        })
    }

    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn roots(&self) -> &[u8] {
        &self.roots
    }

    pub(super) fn service(&self) -> Option<&ServiceRef> {
        self.service.as_ref()
    }
}

/// A path as Go's `path.Join` leaves it: rooted, without empty parts, dots and a trailing slash.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn client_configs_are_read() {
        for (config, authority, host, port, path) in [
            (json!({"url": "https://a.b/x/y/"}), "a.b", "a.b", 443, "/x/y"),
            (json!({"url": "https://a.b:8443"}), "a.b:8443", "a.b", 8443, "/"),
            (json!({"url": "https://[::1]:8443/x"}), "[::1]:8443", "::1", 8443, "/x"),
            (
                json!({"service": {"name": "s", "namespace": "n", "path": "/m"}}),
                "s.n.svc:443",
                "s.n.svc",
                443,
                "/m",
            ),
            (
                json!({"service": {"name": "s", "namespace": "n", "port": 9443}}),
                "s.n.svc:9443",
                "s.n.svc",
                9443,
                "/",
            ),
        ] {
            let read = Endpoint::parse(&config).expect("a good configuration");
            let read = (read.authority(), read.host(), read.port(), read.path());
            assert_eq!(read, (authority, host, port, path), "{config}");
        }
    }
}
