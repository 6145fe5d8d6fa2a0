//! How a server is made.

use crate::admission::Admission;
use crate::auth::{Auth, Recorder, User};
use crate::object::Header;
use crate::outbound::{Outbound, ServiceName};
use crate::server::{Inner, Lasting};
use crate::service::ApiService;
use crate::{bootstrap, dump};
use bytes::Bytes;
use http::{Request, Response};
use orlop_clock::{Clock, Rng};
use orlop_store::{Limits, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

/// A Kubernetes API server in this process. Cheap to clone; clones are the same server.
#[derive(Clone)]
pub struct ApiServer(pub(crate) Arc<Inner>);

/// Choices for a new server.
#[must_use]
pub struct Builder {
    clock: Clock,
    rng: Rng,
    limits: Limits,
    tokens: BTreeMap<String, Arc<User>>,
    recorder: Option<Arc<dyn Recorder>>,
    disabled: BTreeSet<String>,
    outbound: Outbound,
    pub(crate) signing_key: Option<Vec<u8>>,
}

impl ApiServer {
    /// A server with the system's clock, admission as envtest has it, and no tokens.
    pub fn builder() -> Builder {
        Builder {
            clock: Clock::system(),
            rng: Rng::unseeded(),
            limits: Limits::default(),
            tokens: BTreeMap::new(),
            recorder: None,
            disabled: BTreeSet::from(["ServiceAccount".to_owned()]),
            outbound: Outbound::default(),
            signing_key: None,
        }
    }

    /// A service whose callers say who they are, by token.
    pub fn service(&self) -> ApiService {
        ApiService::new(self.0.clone(), None)
    }

    /// A service whose callers are `user`.
    pub fn service_as(&self, user: User) -> ApiService {
        ApiService::new(self.0.clone(), Some(Arc::new(user)))
    }

    /// The whole state as a stream of YAML documents, ordered by kind, namespace and name.
    pub fn dump(&self) -> String {
        dump::dump(&self.0)
    }

    /// Puts the objects of a dump in place of all that is here.
    pub fn load(&self, yaml: &str) -> Result<(), dump::LoadError> {
        dump::load(&self.0, yaml)
    }

    /// The state at this moment, to come back to. Costs nothing.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.0.store.backup())
    }

    /// Lets a function in this process answer for a service that webhooks name, from now on.
    ///
    /// The request has path, query and body that a server behind the service would see; the function may call this
    /// server. If it holds the server, the server lives until the function is taken back
    /// ([`ApiServer::unregister_service`]).
    pub fn register_service<F, A>(&self, service: ServiceName, handler: F)
    where
        F: Fn(Request<Bytes>) -> A + Send + Sync + 'static,
        A: Future<Output = Response<Bytes>> + Send + 'static,
    {
        self.0.outbound.services.register(service, handler);
    }

    /// Undoes [`ApiServer::register_service`].
    pub fn unregister_service(&self, service: &ServiceName) {
        self.0.outbound.services.remove(service);
    }

    /// Goes back to an earlier state. Versions go on growing; watches end and start again.
    pub fn restore(&self, snapshot: &Snapshot) -> Result<(), NotKept> {
        self.0.store.restore(&snapshot.0).map_err(|_| NotKept)?;
        self.0.rebuild();
        Ok(())
    }
}

/// The state of a server at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot(orlop_store::Backup<crate::object::Header>);

impl Builder {
    /// The clock that timestamps, expiry and history go by.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// The source of uids, generated names and timeouts.
    pub fn rng(mut self, rng: Rng) -> Self {
        self.rng = rng;
        self
    }

    /// How much history watches and lists can go back.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Lets whoever brings `token` be `user`.
    pub fn token(mut self, token: &str, user: User) -> Self {
        self.tokens.insert(token.to_owned(), Arc::new(user));
        self
    }

    /// Hears of every request that needs a right; health checks are not among them.
    pub fn recorder(mut self, recorder: impl Recorder + 'static) -> Self {
        self.recorder = Some(Arc::new(recorder));
        self
    }

    /// Switches an admission plugin off, by the name kube-apiserver knows it by.
    pub fn disable_admission(mut self, plugin: &str) -> Self {
        self.disabled.insert(plugin.to_owned());
        self
    }

    /// Switches an admission plugin on.
    pub fn enable_admission(mut self, plugin: &str) -> Self {
        self.disabled.remove(plugin);
        self
    }

    /// Lets a function in this process answer for a service that webhooks name.
    pub fn register_service<F, A>(self, service: ServiceName, handler: F) -> Self
    where
        F: Fn(Request<Bytes>) -> A + Send + Sync + 'static,
        A: Future<Output = Response<Bytes>> + Send + 'static,
    {
        self.outbound.services.register(service, handler);
        self
    }

    /// Says where services are (namespace, name and port to address) that no function in this process answers for.
    /// Their certificates must be good for `name.namespace.svc`.
    pub fn service_resolver(
        self,
        resolver: impl Fn(&str, &str, u16) -> Option<SocketAddr> + Send + Sync + 'static,
    ) -> Self {
        self.outbound.services.set_resolver(resolver);
        self
    }

    /// Makes the server, with what a new cluster holds.
    pub fn build(self) -> ApiServer {
        self.build_from(None)
    }

    /// Makes the server from a state that was kept, with what a new cluster holds and the state has not.
    pub(crate) fn build_from(self, kept: Option<Kept>) -> ApiServer {
        let auth = Auth::new(self.tokens, self.recorder, self.signing_key.as_deref());
        let admission = Admission::without(self.disabled);
        let (store, disk) = match kept {
            Some((disk, state)) => (Store::with_journal(self.limits, &state, disk.clone()), Some(disk)),
            None => (Store::new(self.limits), None),
        };
        let inner = Inner::new(self.clock, self.rng, store, disk, admission, auth, self.outbound);
        bootstrap::populate(&inner);
        if inner.disk.is_some() {
            inner.rebuild();
        }
        ApiServer(Arc::new(inner))
    }
}

/// What a server goes on from: its disk and the state on it.
pub(crate) type Kept = (Arc<dyn Lasting>, orlop_store::Backup<Header>);

/// The disk failed, and nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the change could not be recorded on the disk, so it was not made")]
pub struct NotKept;
