//! Services that webhooks name: functions in this process, or addresses that the embedder knows.

use super::endpoint::ServiceRef;
use crate::object;
use crate::server::Inner;
use bytes::Bytes;
use http::{Request, Response};
use orlop_store::Key;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock};

/// The label by which a slice says whose endpoints it holds.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";

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

/// Where a stored Service is: at the first ready endpoint that its EndpointSlices know.
pub(super) fn cluster_address(server: &Inner, service: &ServiceRef) -> Result<SocketAddr, String> {
    let name = service.name.as_str();
    let services = Inner::built_in("", "v1", "services");
    let Some(found) = server.find(&services, &service.namespace, name) else {
        return Err(format!("service \"{name}\" not found"));
    };
    let ty = object::text(&found["spec"], "type");
    if !matches!(ty, "ClusterIP" | "LoadBalancer" | "NodePort") {
        return Err(format!("unsupported service type \"{ty}\""));
    }
    let mut ports = found["spec"]["ports"].as_array().into_iter().flatten();
    let port = ports.find(|port| port["port"].as_u64() == Some(service.port.into()));
    let port =
        port.ok_or_else(|| format!("no service port {} found for service \"{name}\"", service.port))?;
    let slices = Inner::built_in("discovery.k8s.io", "v1", "endpointslices");
    let prefix = format!("{}/", service.namespace);
    let snapshot = server.store.snapshot(&slices.table);
    let is_own = |stored: &&crate::object::Stored| {
        let labels = stored.header.labels.iter();
        labels.into_iter().any(|(key, value)| **key == *SERVICE_LABEL && **value == *name)
    };
    let start = Key::from_text(&prefix);
    let mut own = snapshot.within(&prefix, &start).filter(is_own);
    own.find_map(|stored| ready_address(&slices.read(stored), object::text(port, "name")))
        .ok_or_else(|| format!("no endpoints available for service \"{name}\""))
}

/// The first address of a slice that is ready and has the port.
fn ready_address(slice: &Value, port: &str) -> Option<SocketAddr> {
    let mut ports = slice["ports"].as_array().into_iter().flatten();
    let number = ports.find(|found| object::text(found, "name") == port)?["port"].as_u64()?;
    let mut endpoints = slice["endpoints"].as_array().into_iter().flatten();
    let ready = endpoints.find(|endpoint| endpoint["conditions"]["ready"] != false)?;
    let address = ready["addresses"].get(0)?.as_str()?.parse().ok()?;
    Some(SocketAddr::new(address, u16::try_from(number).ok()?))
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
