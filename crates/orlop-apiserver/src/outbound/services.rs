//! Services that webhooks name: functions in this process, or addresses that the embedder knows.

use super::endpoint::ServiceRef;
use crate::object;
use crate::server::Inner;
use bytes::Bytes;
use http::{Request, Response};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock};

/// A service as a webhook names it: `namespace/name`, or `namespace/name:port` for one port alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceName {
    namespace: String,
    name: String,
    port: Option<u16>,
}

/// A text that is not `namespace/name[:port]`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a service is named `namespace/name` or `namespace/name:port`, not `{0}`")]
pub struct NotAServiceName(String);

impl FromStr for ServiceName {
    type Err = NotAServiceName;

    fn from_str(text: &str) -> Result<Self, NotAServiceName> {
        let wrong = || NotAServiceName(text.to_owned());
        let (namespace, rest) = text.split_once('/').ok_or_else(wrong)?;
        let (name, port) = match rest.split_once(':') {
            Some((name, port)) => (name, Some(port.parse().map_err(|_| wrong())?)),
            None => (rest, None),
        };
        if namespace.is_empty() || name.is_empty() || name.contains('/') {
            return Err(wrong());
        }
        Ok(Self { namespace: namespace.to_owned(), name: name.to_owned(), port })
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

type Answering = Pin<Box<dyn Future<Output = Response<Bytes>> + Send>>;
type Handler = Arc<dyn Fn(Request<Bytes>) -> Answering + Send + Sync>;
type Resolver = Arc<dyn Fn(&str, &str, u16) -> Option<SocketAddr> + Send + Sync>;

/// The services that the embedder answers for.
#[derive(Default)]
pub(crate) struct Services {
    handlers: RwLock<BTreeMap<ServiceName, Handler>>,
    resolver: RwLock<Option<Resolver>>,
}

impl Services {
    /// Lets a function answer for a service, in place of the one that did before.
    pub(crate) fn register<F, A>(&self, name: ServiceName, handler: F)
    where
        F: Fn(Request<Bytes>) -> A + Send + Sync + 'static,
        A: Future<Output = Response<Bytes>> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |request| Box::pin(handler(request)));
        self.handlers.write().unwrap_or_else(PoisonError::into_inner).insert(name, handler);
    }

    /// Lets nobody in this process answer for a service any more.
    pub(crate) fn remove(&self, name: &ServiceName) {
        self.handlers.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    /// Sets who knows the addresses of other services.
    pub(crate) fn set_resolver(
        &self,
        resolver: impl Fn(&str, &str, u16) -> Option<SocketAddr> + Send + Sync + 'static,
    ) {
        *self.resolver.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(resolver));
    }

    pub(super) fn handler(&self, service: &ServiceRef) -> Option<Handler> {
        let handlers = self.handlers.read().unwrap_or_else(PoisonError::into_inner);
        let named = |port| {
            let (namespace, name) = (service.namespace.clone(), service.name.clone());
            handlers.get(&ServiceName { namespace, name, port }).cloned()
        };
        named(Some(service.port)).or_else(|| named(None))
    }

    pub(super) fn resolve(&self, service: &ServiceRef) -> Option<SocketAddr> {
        let resolver = self.resolver.read().unwrap_or_else(PoisonError::into_inner).clone();
        resolver.and_then(|resolver| resolver(&service.namespace, &service.name, service.port))
    }
}

/// Where a stored Service would be reached in a cluster. Nothing carries packets to cluster addresses here, so this
/// ends in an error in any case: the one that the real server gives, as far as it is about the Service itself.
pub(super) fn cluster_address(server: &Inner, service: &ServiceRef) -> Result<SocketAddr, String> {
    let services = Inner::built_in("", "v1", "services");
    let Some(found) = server.find(&services, &service.namespace, &service.name) else {
        return Err(format!("service \"{}\" not found", service.name));
    };
    let spec = &found["spec"];
    let (ty, address) = (object::text(spec, "type"), object::text(spec, "clusterIP"));
    match ty {
        "ExternalName" => {
            let host = object::text(spec, "externalName");
            return Err(format!("dial tcp: lookup {host}: no such host"));
        }
        "ClusterIP" if address == "None" => {
            return Err("cannot route to service with ClusterIP \"None\"".to_owned());
        }
        _ => {}
    }
    let mut ports = spec["ports"].as_array().into_iter().flatten();
    if !ports.any(|port| port.get("port").and_then(Value::as_u64) == Some(service.port.into())) {
        return Err(format!("no service port {} found for service \"{}\"", service.port, service.name));
    }
    Err(format!("dial tcp {address}:{}: connect: no route to host", service.port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_have_names() {
        for text in ["ns/name", "ns/name:8443"] {
            assert_eq!(text.parse::<ServiceName>().expect("a good name").to_string(), text);
        }
        for text in ["name", "/name", "ns/", "ns/name:x", "ns/a/b"] {
            assert!(text.parse::<ServiceName>().is_err(), "{text}");
        }
    }
}
