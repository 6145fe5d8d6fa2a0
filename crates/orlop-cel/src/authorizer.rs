//! Questions that expressions put to the authorizer of a server, and its answers.

/// On whose behalf a question is put.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Subject {
    /// The user of the request.
    #[default]
    Requester,
    /// A service account.
    ServiceAccount {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// How far a question has been put.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    #[default]
    Start,
    Path,
    Group,
    Resource,
    Asked,
}

/// A question: may the subject do this?
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Check {
    pub(crate) stage: Stage,
    /// On whose behalf.
    pub subject: Subject,
    /// What is to be done.
    pub verb: String,
    /// A path that is no resource; empty for resources.
    pub path: String,
    /// The API group.
    pub group: String,
    /// The resource.
    pub resource: String,
    /// Its subresource.
    pub subresource: String,
    /// The namespace.
    pub namespace: String,
    /// The object.
    pub name: String,
    /// Restricts a list by fields.
    pub field_selector: String,
    /// Restricts a list by labels.
    pub label_selector: String,
}

impl Check {
    /// The question about a resource that `authorizer.requestResource` starts with.
    pub fn resource(group: &str, resource: &str, subresource: &str, namespace: &str, name: &str) -> Self {
        Self {
            stage: Stage::Resource,
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..Self::default()
        }
    }

    pub(crate) fn with_verb(&self, verb: &str) -> Option<Self> {
        let complete = matches!(self.stage, Stage::Path | Stage::Resource);
        complete.then(|| Self { stage: Stage::Asked, verb: verb.to_owned(), ..self.clone() })
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self.stage {
            Stage::Start => "kubernetes.authorization.Authorizer",
            Stage::Path => "kubernetes.authorization.PathCheck",
            Stage::Group => "kubernetes.authorization.GroupCheck",
            Stage::Resource | Stage::Asked => "kubernetes.authorization.ResourceCheck",
        }
    }
}

/// What the authorizer answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether it may be done.
    pub allowed: bool,
    /// Why.
    pub reason: String,
    /// What went wrong, if anything did.
    pub error: Option<String>,
}

/// Who answers.
pub trait Authorizer {
    /// The answer to a question.
    fn authorize(&self, check: &Check) -> Decision;
}
