//! Field selectors: `metadata.name=x,status.phase!=Running`, over the fields that a kind allows.

use crate::object;
use serde_json::Value;

/// A conjunction of comparisons; an empty one matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector(Vec<Term>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    field: String,
    value: String,
    equal: bool,
}

/// Which fields a kind can be selected by, beyond its name and namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selectable {
    fields: Vec<(String, Read)>,
    refusal: Refusal,
}

/// How a field's text is found in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    /// At its own path; absent is the empty string.
    Path,
    /// At another path.
    Alias(&'static str),
    /// At its own path; absent is the given text.
    Or(&'static str),
    /// Known, but never set.
    Never,
    /// The source of an event, which has two spellings.
    EventSource,
}

/// How an unknown field is refused; the kinds of Kubernetes differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    OnlyMetadata,
    NotSupported,
    NotSupportedForJob,
    NotSupportedForResourceSlice,
}

impl Selectable {
    /// The fields of a custom kind, as JSON paths without the leading dot.
    pub(crate) fn custom(paths: impl IntoIterator<Item = String>) -> Self {
        let fields = paths.into_iter().map(|path| (path, Read::Path)).collect();
        Self { fields, refusal: Refusal::NotSupported }
    }

    /// The fields of a built-in kind.
    pub(crate) fn built_in(group: &str, kind: &str) -> Self {
        let own =
            |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), Read::Path)).collect::<Vec<_>>();
        let (mut fields, refusal) = match (group, kind) {
            ("", "Pod") => (
                own(&[
                    "spec.nodeName",
                    "spec.restartPolicy",
                    "spec.schedulerName",
                    "spec.serviceAccountName",
                    "status.phase",
                    "status.podIP",
                    "status.nominatedNodeName",
                ]),
                Refusal::NotSupported,
            ),
            ("", "Node" | "ReplicationController") => (Vec::new(), Refusal::NotSupported),
            ("", "Namespace") => (own(&["status.phase"]), Refusal::NotSupported),
            ("", "Secret") => (own(&["type"]), Refusal::NotSupported),
            ("", "Service") => (own(&["spec.clusterIP", "spec.type"]), Refusal::NotSupported),
            ("", "Event") => (
                own(&[
                    "involvedObject.kind",
                    "involvedObject.namespace",
                    "involvedObject.name",
                    "involvedObject.uid",
                    "involvedObject.apiVersion",
                    "involvedObject.resourceVersion",
                    "involvedObject.fieldPath",
                    "reason",
                    "type",
                ]),
                Refusal::NotSupported,
            ),
            ("events.k8s.io", "Event") => (own(&["reason", "type"]), Refusal::NotSupported),
            ("batch", "Job") => (Vec::new(), Refusal::NotSupportedForJob),
            ("certificates.k8s.io", "CertificateSigningRequest" | "ClusterTrustBundle") => {
                (own(&["spec.signerName"]), Refusal::NotSupported)
            }
            ("certificates.k8s.io", "PodCertificateRequest") => {
                (own(&["spec.signerName", "spec.podName", "spec.nodeName"]), Refusal::NotSupported)
            }
            ("resource.k8s.io", "ResourceSlice") => {
                (own(&["spec.nodeName", "spec.driver"]), Refusal::NotSupportedForResourceSlice)
            }
            _ => (Vec::new(), Refusal::OnlyMetadata),
        };
        let special: &[(&str, Read)] = match (group, kind) {
            ("", "Pod") => &[
                ("spec.host", Read::Alias("spec.nodeName")),
                ("spec.hostNetwork", Read::Or("false")),
                ("status.podIPs", Read::Never),
            ],
            ("", "Node") => &[("spec.unschedulable", Read::Or("false"))],
            ("", "ReplicationController") => &[("status.replicas", Read::Or("0"))],
            ("", "Event") => &[("reportingComponent", Read::Path), ("source", Read::EventSource)],
            ("batch", "Job") => &[("status.successful", Read::Alias("status.succeeded"))],
            ("events.k8s.io", "Event") => &[
                ("regarding.kind", Read::Path),
                ("regarding.namespace", Read::Path),
                ("regarding.name", Read::Path),
                ("regarding.uid", Read::Path),
                ("regarding.apiVersion", Read::Path),
                ("regarding.resourceVersion", Read::Path),
                ("regarding.fieldPath", Read::Path),
                ("reportingController", Read::Path),
            ],
            _ => &[],
        };
        fields.extend(special.iter().map(|(name, read)| ((*name).to_owned(), *read)));
        Self { fields, refusal }
    }

    fn refuse(&self, field: &str) -> String {
        match self.refusal {
            Refusal::OnlyMetadata => {
                format!(
                    "\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                )
            }
            Refusal::NotSupported => format!("field label not supported: {field}"),
            Refusal::NotSupportedForJob => format!("field label \"{field}\" not supported for Job"),
            Refusal::NotSupportedForResourceSlice => {
                format!("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {field}")
            }
        }
    }

    fn knows(&self, field: &str) -> bool {
        matches!(field, "metadata.name" | "metadata.namespace")
            || self.fields.iter().any(|(name, _)| name == field)
    }

    fn read(&self, object: &Value, field: &str) -> String {
        let read = self.fields.iter().find(|(name, _)| name == field).map_or(Read::Path, |(_, read)| *read);
        let plain = |path: &str| match object::at(object, path) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        match read {
            Read::Path => plain(field),
            Read::Alias(path) => match plain(path) {
                text if text.is_empty() && field == "status.successful" => "0".to_owned(),
                text => text,
            },
            Read::Or(absent) => match plain(field) {
                text if text.is_empty() => absent.to_owned(),
                text => text,
            },
            Read::Never => String::new(),
            Read::EventSource => match plain("source.component") {
                text if text.is_empty() => plain("reportingComponent"),
                text => text,
            },
        }
    }
}

impl FieldSelector {
    /// Reads a selector and checks its fields; errors are worded as in Kubernetes.
    pub(crate) fn parse(text: &str, selectable: &Selectable) -> Result<Self, String> {
        let mut terms = Vec::new();
        for part in split_terms(text) {
            if part.is_empty() {
                continue;
            }
            let term = split_term(&part)
                .ok_or_else(|| format!("invalid selector: '{text}'; can't understand '{part}'"))?;
            if !selectable.knows(&term.field) {
                return Err(selectable.refuse(&term.field));
            }
            terms.push(term);
        }
        Ok(Self(terms))
    }

    /// Whether everything matches.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether more than name and namespace is compared, so that the object must be parsed.
    pub(crate) fn needs_object(&self) -> bool {
        self.0.iter().any(|term| !matches!(term.field.as_str(), "metadata.name" | "metadata.namespace"))
    }

    /// Whether an object's name and namespace match; other fields are not looked at.
    pub(crate) fn matches_name(&self, namespace: &str, name: &str) -> bool {
        self.0.iter().all(|term| match term.field.as_str() {
            "metadata.name" => (term.value == name) == term.equal,
            "metadata.namespace" => (term.value == namespace) == term.equal,
            _ => true,
        })
    }

    /// Whether an object matches.
    pub(crate) fn matches(&self, object: &Value, selectable: &Selectable) -> bool {
        self.0.iter().all(|term| (selectable.read(object, &term.field) == term.value) == term.equal)
    }
}

/// Splits at commas that are not escaped.
fn split_terms(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        if c == ',' && !escaped {
            parts.push(String::new());
            continue;
        }
        escaped = c == '\\' && !escaped;
        parts.last_mut().expect("there is always a part").push(c);
    }
    parts
}

fn split_term(term: &str) -> Option<Term> {
    let mut escaped = false;
    for (at, c) in term.char_indices() {
        if escaped {
            escaped = false;
            continue;
        }
        if c == '\\' {
            escaped = true;
            continue;
        }
        for (operator, equal) in [("!=", false), ("==", true), ("=", true)] {
            if let Some(value) = term[at..].strip_prefix(operator) {
                return Some(Term { field: term[..at].to_owned(), value: unescape(value)?, equal });
            }
        }
    }
    None
}

fn unescape(value: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                escaped @ ('\\' | ',' | '=') => out.push(escaped),
                _ => return None,
            },
            ',' | '=' => return None,
            c => out.push(c),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_compared_as_text() {
        let pods = Selectable::built_in("", "Pod");
        let pod = json!({"metadata": {"name": "p", "namespace": "n"}, "spec": {"nodeName": "n1"}});
        for (selector, expected) in [
            ("", true),
            ("metadata.name=p", true),
            ("metadata.name==p,metadata.namespace!=n", false),
            ("spec.nodeName=n1", true),
            ("spec.host=n1", true),
            ("spec.hostNetwork=false", true),
            ("status.phase=", true),
            ("status.phase!=Running", true),
        ] {
            let parsed = FieldSelector::parse(selector, &pods).expect(selector);
            assert_eq!(parsed.matches(&pod, &pods), expected, "{selector}");
        }
    }

    #[test]
    fn unknown_fields_are_refused_in_the_words_of_the_kind() {
        for (selectable, selector, message) in [
            (Selectable::built_in("", "Pod"), "spec.foo=1", "field label not supported: spec.foo"),
            (Selectable::built_in("batch", "Job"), "foo=x", "field label \"foo\" not supported for Job"),
            (
                Selectable::built_in("", "ConfigMap"),
                "data.a=1",
                "\"data.a\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
            ),
            (
                Selectable::built_in("", "ConfigMap"),
                "metadata.name",
                "invalid selector: 'metadata.name'; can't understand 'metadata.name'",
            ),
        ] {
            assert_eq!(FieldSelector::parse(selector, &selectable), Err(message.to_owned()));
        }
    }
}
