//! Webhooks as the configurations in the store have them, in the order in which they are called.

use super::review::Shown;
use crate::admission::Attributes;
use crate::admission::conditions::Conditions;
use crate::admission::matching::Matched;
use crate::kind::Kind;
use crate::object::{self, Stored};
use crate::outbound::Endpoint;
use crate::server::Inner;
use crate::status::ApiError;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a webhook may take that does not say.
const DEFAULT_TIMEOUT_SECONDS: u64 = 10;

/// The versions of reviews that the server speaks.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// One webhook.
pub(super) struct Hook {
    pub(super) name: String,
    /// What tells it from all others.
    pub(super) id: String,
    /// As it is configured; matching looks here.
    pub(super) config: Value,
    /// What must hold of a request for it to be asked.
    conditions: Conditions,
    pub(super) endpoint: Result<Endpoint, String>,
    pub(super) timeout: Duration,
    /// The first version of reviews that both sides speak.
    pub(super) review_version: Option<&'static str>,
    /// Whether a failing call counts as consent.
    pub(super) fails_open: bool,
    /// Whether it wants to see what later ones did.
    pub(super) reinvoked: bool,
    /// Whether a dry run may call it.
    pub(super) dry_runs: bool,
}

impl Hook {
    fn new(configuration: &str, number: usize, config: &Value) -> Self {
        let name = object::text(config, "name");
        let timeout = config.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(DEFAULT_TIMEOUT_SECONDS);
        let mut spoken = config["admissionReviewVersions"].as_array().into_iter().flatten();
        Self {
            name: name.to_owned(),
            id: format!("{configuration}/{name}/{number}"),
            endpoint: Endpoint::parse(&config["clientConfig"]),
            timeout: Duration::from_secs(timeout),
            review_version: spoken
                .find_map(|version| REVIEW_VERSIONS.into_iter().find(|known| *version == **known)),
            fails_open: config["failurePolicy"] == "Ignore",
            reinvoked: config["reinvocationPolicy"] == "IfNeeded",
            dry_runs: config["sideEffects"] == "None" || config["sideEffects"] == "NoneOnDryRun",
            conditions: Conditions::compile(&config["matchConditions"]),
            config: config.clone(),
        }
    }

    /// Whether the conditions hold of a request that the rules match. If that cannot be said, the failure policy
    /// decides whether the request is refused or the webhook is not asked.
    pub(super) fn is_wanted(
        &self,
        server: &Inner,
        kind: &Kind,
        attributes: &Attributes,
        matched: &Matched,
        shown: &Shown,
    ) -> Result<bool, ApiError> {
        let objects = (&shown.object, &shown.old);
        match self.conditions.matches(server, kind, attributes, &matched.kind, objects) {
            Ok(holds) => Ok(holds),
            Err(_) if self.fails_open => Ok(false),
            Err(why) => Err(ApiError::forbidden(&kind.group, &kind.plural, &attributes.name, &why)),
        }
    }
}

/// The webhooks of one kind of configuration, read again when one has changed.
pub(super) struct Hooks {
    kind: Arc<Kind>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    sources: Vec<Stored>,
    hooks: Arc<Vec<Hook>>,
}

impl Hooks {
    /// Those of `validatingwebhookconfigurations` or `mutatingwebhookconfigurations`.
    pub(super) fn of(plural: &str) -> Self {
        let kind = Inner::built_in("admissionregistration.k8s.io", "v1", plural);
        Self { kind, known: Mutex::default() }
    }

    /// All webhooks, by the name of their configuration, then by their place in it.
    pub(super) fn all(&self, server: &Inner) -> Arc<Vec<Hook>> {
        let snapshot = server.store.snapshot(&self.kind.table);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen = 0;
        let same = snapshot.iter().all(|stored| {
            seen += 1;
            known.sources.get(seen - 1).is_some_and(|source| Arc::ptr_eq(source, stored))
        });
        if !same || seen != known.sources.len() {
            let sources: Vec<Stored> = snapshot.iter().cloned().collect();
            let hooks = sources.iter().flat_map(|stored| hooks_of(&self.kind.read(stored))).collect();
            *known = Known { sources, hooks: Arc::new(hooks) };
        }
        known.hooks.clone()
    }
}

fn hooks_of(configuration: &Value) -> Vec<Hook> {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let hooks = configuration["webhooks"].as_array().into_iter().flatten();
    hooks
        .map(|hook| {
            let number = numbers.entry(object::text(hook, "name")).or_default();
            *number += 1;
            Hook::new(object::meta_str(configuration, "name"), *number - 1, hook)
        })
        .collect()
}
