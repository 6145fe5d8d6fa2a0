//! Fields that a write cannot set, and that field management therefore forgets when a writer names them.

use super::{Status, strategy};

/// The dotted paths that writes to a kind or one of its subresources never set.
pub fn reset_fields(group: &str, kind: &str, subresource: Option<&str>) -> &'static [&'static str] {
    let Some(row) = strategy(group, kind) else { return &[] };
    match (kind, subresource, row.status) {
        ("CertificateSigningRequest", None, _) => &["spec", "status"],
        ("CertificateSigningRequest", Some("status"), _) => &["spec", "status.conditions"],
        ("CertificateSigningRequest", Some("approval"), _) => &["spec", "status.certificate"],
        ("CustomResourceDefinition", Some("status"), _) => &["metadata", "spec"],
        ("Namespace", Some("finalize"), _) => &["status"],
        ("Pod", Some("status"), _) => &["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"],
        (_, _, Status::Plain) => &[],
        (_, None, _) => &["status"],
        (_, Some("status"), Status::WithMetadata | Status::AtCreation) => &["spec"],
        (_, Some("status"), Status::WithoutLabels) => &["spec", "metadata.labels"],
        (_, Some("status"), Status::Only) => &["metadata", "spec"],
        (_, Some(_), _) => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_and_spec_have_different_writers() {
        for (group, kind, sub, fields) in [
            ("apps", "Deployment", None, &["status"][..]),
            ("apps", "Deployment", Some("status"), &["spec", "metadata.labels"]),
            ("apps", "Deployment", Some("scale"), &[]),
            ("", "ConfigMap", None, &[]),
            ("resource.k8s.io", "ResourceClaim", Some("status"), &["metadata", "spec"]),
        ] {
            assert_eq!(reset_fields(group, kind, sub), fields, "{kind} {sub:?}");
        }
    }
}
