//! The server's state, shared by all requests and all services that stand before it.

use crate::admission::Admission;
use crate::auth::{Auth, User};
use crate::crd;
use crate::kind::{Kind, Registry};
use crate::metrics::Metrics;
use crate::object::{Header, Stored};
use crate::openapi;
use crate::outbound::Outbound;
use crate::route::Route;
use crate::services::{Addresses, Allocation, Claim};
use crate::status::ApiError;
use crate::turns::Turns;
use orlop_clock::{Clock, Rng, Timestamp};
use orlop_store::{Journal, Key, Store};
use serde_json::Value;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// A journal that says when changes are safe.
pub(crate) trait Lasting: Journal<Header> {
    /// Ready when everything that has been recorded so far is on the disk, or when it never will be.
    fn settled(&self) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>>;
}

/// Everything that requests share.
pub(crate) struct Inner {
    pub(crate) store: Arc<Store<Header>>,
    /// What makes the store last, if anything does.
    pub(crate) disk: Option<Arc<dyn Lasting>>,
    pub(crate) clock: Clock,
    pub(crate) rng: Rng,
    pub(crate) admission: Admission,
    pub(crate) auth: Auth,
    pub(crate) addresses: Arc<Addresses>,
    pub(crate) outbound: Outbound,
    /// Kinds from CustomResourceDefinitions; replaced as a whole when one changes.
    custom: RwLock<Arc<Registry>>,
    reloading: Mutex<()>,
    pub(crate) openapi: openapi::Cache,
    pub(crate) metrics: Metrics,
    pub(crate) turns: Turns,
}

impl Inner {
    pub(crate) fn new(
        clock: Clock,
        rng: Rng,
        store: Store<Header>,
        disk: Option<Arc<dyn Lasting>>,
        admission: Admission,
        auth: Auth,
        outbound: Outbound,
    ) -> Self {
        Self {
            store: Arc::new(store),
            disk,
            clock,
            rng,
            admission,
            auth,
            addresses: Arc::default(),
            outbound,
            custom: RwLock::default(),
            reloading: Mutex::default(),
            openapi: openapi::Cache::default(),
            metrics: Metrics::default(),
            turns: Turns::default(),
        }
    }

    /// Ready when everything that was written so far is safe. If it is not, whatever was answered does not hold.
    pub(crate) async fn settled(&self) -> Result<(), ApiError> {
        match &self.disk {
            None => Ok(()),
            Some(disk) => {
                let settled = disk.settled().await;
                settled
                    .map_err(|why| ApiError::internal(&format!("the change is not safe on the disk: {why}")))
            }
        }
    }

    /// The time as it stands in objects.
    pub(crate) fn now(&self) -> String {
        rfc3339(self.clock.now())
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now().as_millisecond()
    }

    /// A kind by its place in a path: built-in or custom.
    pub(crate) fn kind(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Kind>> {
        let built_in = Registry::built_in().get(group, version, plural);
        built_in.cloned().or_else(|| self.custom_kinds().get(group, version, plural).cloned())
    }

    /// The kinds that CustomResourceDefinitions define now.
    pub(crate) fn custom_kinds(&self) -> Arc<Registry> {
        self.custom.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A built-in kind that must exist.
    pub(crate) fn built_in(group: &str, version: &str, plural: &str) -> Arc<Kind> {
        let kind = Registry::built_in().get(group, version, plural);
        kind.cloned().unwrap_or_else(|| panic!("the catalog has no {plural}.{group}/{version}"))
    }

    /// An object of a built-in kind, in the kind's version.
    pub(crate) fn find(&self, kind: &Kind, namespace: &str, name: &str) -> Option<Value> {
        Some(kind.read(&self.store.get(&kind.table, &kind.key(namespace, name))?))
    }

    /// All stored objects of a kind in a namespace, by name.
    pub(crate) fn stored_within(&self, kind: &Kind, namespace: &str) -> Vec<Stored> {
        let prefix = if kind.namespaced { format!("{namespace}/") } else { String::new() };
        let snapshot = self.store.snapshot(&kind.table);
        snapshot.within(&prefix, &Key::from_text(&prefix)).cloned().collect()
    }

    /// Whether a user may do what a route says.
    pub(crate) fn authorize(&self, user: &User, route: &Route) -> Result<(), ApiError> {
        self.auth.authorize(self, user, route)
    }

    /// Called after each write: what the server itself derives from objects follows at once.
    pub(crate) fn committed(&self, kind: &Kind, old: Option<&Value>, new: Option<&Value>) {
        match (kind.group.as_str(), kind.plural.as_str()) {
            ("apiextensions.k8s.io", "customresourcedefinitions") => crd::changed(self, old, new),
            ("", "services") => {
                if let Some(old) = old {
                    self.addresses.release(old, new);
                }
            }
            _ => {}
        }
        if let Some(definition) = kind.custom() {
            crd::instance_changed(self, kind, definition, new.is_none());
        }
    }

    /// Held while the custom kinds are made anew, so that the newest state is the last to be set.
    pub(crate) fn reloading(&self) -> MutexGuard<'_, ()> {
        self.reloading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Derives everything anew from what is stored.
    pub(crate) fn rebuild(&self) {
        crd::rebuild(self);
        self.reclaim_addresses();
    }

    /// Notes which addresses the stored Services have, and no others.
    pub(crate) fn reclaim_addresses(&self) {
        let services = Self::built_in("", "v1", "services");
        self.addresses
            .replace(self.store.snapshot(&services.table).iter().map(|stored| services.read(stored)));
    }

    /// Makes the custom kinds anew.
    pub(crate) fn set_custom_kinds(&self, registry: Registry) {
        *self.custom.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(registry);
    }

    /// Gives a Service its addresses and ports; other kinds have none.
    pub(crate) fn allocate(
        &self,
        kind: &Kind,
        object: &mut Value,
        allocation: Allocation<'_>,
    ) -> Result<Option<Claim>, ApiError> {
        if kind.plural != "services" || !kind.group.is_empty() {
            return Ok(None);
        }
        self.addresses.allocate(object, allocation).map(Some)
    }
}

/// A time as it stands in objects: whole seconds, UTC.
pub(crate) fn rfc3339(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}
