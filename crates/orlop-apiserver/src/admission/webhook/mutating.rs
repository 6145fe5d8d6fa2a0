//! Mutating webhooks: asked one after the other, each sees what those before it did.

use super::review::{self, Consent, Phase, Refusal};
use super::{Webhooks, shown};
use crate::admission::matching::{self, Matched};
use crate::admission::{Attributes, Gvk};
use crate::kind::Kind;
use crate::object;
use crate::server::Inner;
use crate::status::ApiError;
use orlop_kinds::catalog::catalog;
use orlop_kinds::{codec, defaults, json};
use orlop_merge::json_patch;
use serde_json::Value;
use std::collections::BTreeSet;

/// Who was asked in the first round and must be asked again in the second.
#[derive(Debug, Default)]
pub(crate) struct Reinvocation {
    /// The object after the last webhook of the first round.
    last: Option<Value>,
    /// Those that want to be asked again if something changes after them.
    waiting: BTreeSet<String>,
    /// Those after whom something changed.
    due: BTreeSet<String>,
}

impl Reinvocation {
    fn something_changed(&mut self) {
        self.due.append(&mut self.waiting);
    }
}

impl Webhooks {
    /// Lets webhooks change an object or refuse it.
    pub(crate) async fn mutate(
        &self,
        server: &Inner,
        kind: &Kind,
        attributes: &mut Attributes,
    ) -> Result<(), ApiError> {
        let hooks = self.mutating.all(server);
        if hooks.is_empty() || matching::is_exempt(attributes) {
            return Ok(());
        }
        let again = attributes.rounds.again;
        let webhooks = &mut attributes.rounds.webhooks;
        if again && webhooks.last.as_ref() != Some(&attributes.object) {
            webhooks.something_changed();
        }
        for hook in hooks.iter() {
            let Some(matched) = matching::webhook(server, &hook.config, kind, attributes)? else { continue };
            let shown = shown(server, kind, attributes, &matched).await?;
            if !hook.is_wanted(server, kind, attributes, &matched, &shown)?
                || again && !attributes.rounds.webhooks.due.contains(&hook.id)
            {
                continue;
            }
            let answer = review::ask(server, hook, Phase::Mutating, kind, attributes, &matched, &shown).await;
            let (changed, refusal) = match answer {
                Ok(consent) => {
                    consent.warnings.iter().for_each(|text| attributes.warn(text));
                    match patched(&hook.name, &consent, &matched, kind, shown.object) {
                        Ok(None) => (false, None),
                        Ok(Some((object, changed))) => {
                            attributes.rounds.patched = true;
                            if attributes.rounds.owners.is_none() {
                                let owners = attributes.object.pointer("/metadata/managedFields").cloned();
                                attributes.rounds.owners = Some(owners.unwrap_or_default());
                            }
                            attributes.object = if matched.is_converted(attributes) {
                                kind.convert_shown(server, object, &kind.api_version()).await?
                            } else {
                                object
                            };
                            (changed, None)
                        }
                        Err(refusal) => (false, Some(refusal)),
                    }
                }
                Err(refusal) => {
                    if let Refusal::Denied(_, warnings) = &refusal {
                        warnings.iter().for_each(|text| attributes.warn(text));
                    }
                    (false, Some(refusal))
                }
            };
            if changed {
                attributes.rounds.webhooks.something_changed();
                attributes.rounds.wanted = true;
            }
            if hook.reinvoked {
                attributes.rounds.webhooks.waiting.insert(hook.id.clone());
            }
            if let Some(error) = refusal.and_then(|refusal| refusal.into_error(hook)) {
                return Err(error);
            }
        }
        attributes.rounds.webhooks.last = Some(attributes.object.clone());
        Ok(())
    }
}

/// The object after a webhook's patch, and whether that is another one.
fn patched(
    name: &str,
    consent: &Consent,
    matched: &Matched,
    kind: &Kind,
    object: Value,
) -> Result<Option<(Value, bool)>, Refusal> {
    let Some((patch, ty)) = &consent.patch else { return Ok(None) };
    let undecodable =
        |why: String| Refusal::Call(format!("received undecodable patch in webhook response: {why}"));
    let patch = json::parse(patch).map_err(|why| undecodable(why.to_string()))?.value;
    if patch.is_null() || patch.as_array().is_some_and(Vec::is_empty) {
        return Ok(None);
    }
    let internal = |why: &str| Refusal::Unasked(ApiError::internal(why));
    if object.is_null() {
        return Err(internal(&format!(
            "admission webhook \"{name}\" attempted to modify the object, which is not supported for this operation"
        )));
    }
    if ty != "JSONPatch" {
        return Err(Refusal::Call(format!("unsupported patch type {}", orlop_schema::field::go_quote(ty))));
    }
    let before = object.clone();
    let next = json_patch::apply(object, &patch).map_err(|why| match why {
        json_patch::JsonPatchError::Decode(why) => undecodable(why),
        other => internal(&other.to_string()),
    })?;
    let mut next = decoded(matched, kind, next).map_err(|why| internal(&why))?;
    let changed = next != before;
    default(matched, kind, &mut next);
    Ok(Some((next, changed)))
}

/// A patched object as its kind would be read: what does not fit is an error, what is unknown is dropped; custom objects
/// lose that only when they are stored.
fn decoded(matched: &Matched, kind: &Kind, mut value: Value) -> Result<Value, String> {
    let (group, version) = (&matched.kind.group, &matched.kind.version);
    let wanted = crate::route::api_version(group, version);
    let custom = kind.custom().filter(|_| matched.kind.group == kind.group);
    let given_kind = object::text(&value, "kind").to_owned();
    let given_version = object::text(&value, "apiVersion").to_owned();
    if let Some(custom) = custom {
        if given_kind.is_empty() {
            return Err(format!("Object 'Kind' is missing in '{value}'"));
        }
        if given_version != wanted {
            return Err(format!("request to convert CR from an invalid group/version: {given_version}"));
        }
        return Ok(custom.with_good_metadata(value));
    }
    let shown_kind = if given_kind.is_empty() { &matched.kind.kind } else { &given_kind };
    let shown_version = if given_version.is_empty() { &wanted } else { &given_version };
    let (given_group, short) = shown_version.rsplit_once('/').unwrap_or(("", shown_version));
    let Some(id) = catalog().type_of(given_group, short, shown_kind) else {
        return Err(format!(
            "no kind \"{shown_kind}\" is registered for version \"{shown_version}\" in scheme \
             \"pkg/api/legacyscheme/scheme.go:30\""
        ));
    };
    value["kind"] = shown_kind.as_str().into();
    value["apiVersion"] = shown_version.as_str().into();
    let decoded = codec::decode(id, value).map_err(|why| why.to_string())?.value;
    if *shown_kind != matched.kind.kind || *shown_version != wanted {
        let internal = if group.is_empty() { "core" } else { group.split('.').next().unwrap_or_default() };
        return Err(format!(
            "converting ({short}.{shown_kind}) to ({internal}.{}): unknown conversion",
            matched.kind.kind
        ));
    }
    Ok(decoded)
}

/// Whether an object is shown as what the request is about.
fn is_own(matched: &Matched, kind: &Kind) -> bool {
    matched.kind == Gvk::of(kind)
}

fn default(matched: &Matched, kind: &Kind, object: &mut Value) {
    let (group, version) = (&matched.kind.group, &matched.kind.version);
    match kind.custom().filter(|_| matched.kind.group == kind.group) {
        _ if is_own(matched, kind) => kind.default(object),
        Some(custom) => custom.default_in(object, &crate::route::api_version(group, version)),
        None => {
            if let Some(id) = catalog().type_of(group, version, &matched.kind.kind) {
                defaults::default_object(id, object);
            }
        }
    }
}
