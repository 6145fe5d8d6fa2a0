//! Validating webhooks: all are asked at the same time, and the first one that objects is heard.

use super::review::{self, Phase, Refusal, Shown};
use super::{Webhooks, shown};
use crate::admission::matching::{self, Matched};
use crate::admission::{Attributes, Gvk};
use crate::kind::Kind;
use crate::server::Inner;
use crate::status::ApiError;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

impl Webhooks {
    /// Lets webhooks refuse an object.
    pub(crate) async fn validate(
        &self,
        server: &Inner,
        kind: &Kind,
        attributes: &mut Attributes,
    ) -> Result<(), ApiError> {
        let hooks = self.validating.all(server);
        if hooks.is_empty() || matching::is_exempt(attributes) {
            return Ok(());
        }
        let mut relevant = Vec::new();
        let mut views: BTreeMap<Gvk, Shown> = BTreeMap::new();
        for hook in hooks.iter() {
            let Some(matched) = matching::webhook(server, &hook.config, kind, attributes)? else { continue };
            if !views.contains_key(&matched.kind) {
                let view = shown(server, kind, attributes, &matched).await?;
                views.insert(matched.kind.clone(), view);
            }
            if hook.is_wanted(server, kind, attributes, &matched, &views[&matched.kind])? {
                relevant.push((hook, matched));
            }
        }
        let asked: &Attributes = attributes;
        let ask = |hook, matched: &Matched| {
            let view = &views[&matched.kind];
            let matched = matched.clone();
            async move { review::ask(server, hook, Phase::Validating, kind, asked, &matched, view).await }
        };
        let answers = join_all(relevant.iter().map(|(hook, matched)| ask(*hook, matched))).await;
        let mut refused = None;
        for ((hook, _), answer) in relevant.into_iter().zip(answers) {
            match answer {
                Ok(consent) => consent.warnings.into_iter().for_each(|text| attributes.warn(text)),
                Err(refusal) => {
                    if let Refusal::Denied(_, warnings) = &refusal {
                        warnings.iter().for_each(|text| attributes.warn(text));
                    }
                    refused = refused.or(refusal.into_error(hook));
                }
            }
        }
        refused.map_or(Ok(()), Err)
    }
}

/// Waits for all futures at once; the results are in their order.
async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<Pin<Box<F>>> = futures.map(Box::pin).collect();
    let mut results: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, result) in running.iter_mut().zip(&mut results) {
            if result.is_none()
                && let Poll::Ready(output) = future.as_mut().poll(context)
            {
                *result = Some(output);
            }
        }
        if results.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    results.into_iter().flatten().collect()
}
