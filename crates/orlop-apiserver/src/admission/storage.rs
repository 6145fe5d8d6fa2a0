//! Plugins that protect storage objects and choose default classes.

use super::resources::Resources;
use super::{Attributes, refusal};
use crate::kind::Kind;
use crate::object;
use crate::server::Inner;
use crate::status::ApiError;
use serde_json::{Value, json};

/// `StorageObjectInUseProtection`: what is in use is not deleted.
pub(super) fn protect(kind: &Kind, attributes: &mut Attributes) {
    let finalizer = match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "persistentvolumeclaims") => "kubernetes.io/pvc-protection",
        ("", "persistentvolumes") => "kubernetes.io/pv-protection",
        ("storage.k8s.io", "volumeattributesclasses") => "kubernetes.io/vac-protection",
        _ => return,
    };
    let mut finalizers: Vec<String> =
        object::finalizers(&attributes.object).into_iter().map(str::to_owned).collect();
    if !finalizers.iter().any(|present| present == finalizer) {
        finalizers.push(finalizer.to_owned());
        object::set_meta(&mut attributes.object, "finalizers", json!(finalizers));
    }
}

/// `DefaultStorageClass`: a claim that names no class gets the default one.
pub(super) fn set_storage_class(server: &Inner, attributes: &mut Attributes) {
    let has_class = object::at(&attributes.object, "spec.storageClassName").is_some()
        || object::at(&attributes.object, "metadata.annotations")
            .is_some_and(|a| a.get("volume.beta.kubernetes.io/storage-class").is_some());
    if has_class {
        return;
    }
    let classes = Inner::built_in("storage.k8s.io", "v1", "storageclasses");
    if let Some(name) = default_class(server, &classes, "storageclass.kubernetes.io/is-default-class") {
        object::set_at(&mut attributes.object, "spec.storageClassName", name.into());
    }
}

/// `DefaultIngressClass`: an ingress that names no class gets the default one.
pub(super) fn set_ingress_class(server: &Inner, attributes: &mut Attributes) {
    let has_class = object::at(&attributes.object, "spec.ingressClassName").is_some()
        || object::at(&attributes.object, "metadata.annotations")
            .is_some_and(|a| a.get("kubernetes.io/ingress.class").is_some());
    if has_class {
        return;
    }
    let classes = Inner::built_in("networking.k8s.io", "v1", "ingressclasses");
    if let Some(name) = default_class(server, &classes, "ingressclass.kubernetes.io/is-default-class") {
        object::set_at(&mut attributes.object, "spec.ingressClassName", name.into());
    }
}

/// `PersistentVolumeClaimResize`: only claims whose class allows it grow.
pub(super) fn check_resize(server: &Inner, kind: &Kind, attributes: &Attributes) -> Result<(), ApiError> {
    let size = |claim: &Value| Resources::read(&claim["spec"]["resources"]["requests"]);
    if !size(&attributes.object).beyond(&size(&attributes.old)).names().contains(&"storage") {
        return Ok(());
    }
    let forbidden = |why: &str| Err(refusal::forbidden(kind, attributes, why));
    if attributes.old["status"]["phase"] != "Bound" {
        return forbidden("Only bound persistent volume claims can be expanded");
    }
    let class_of = |claim: &Value| {
        let annotation = claim["metadata"]["annotations"].get("volume.beta.kubernetes.io/storage-class");
        let class = annotation.and_then(Value::as_str);
        class.unwrap_or_else(|| object::text(&claim["spec"], "storageClassName")).to_owned()
    };
    let (class, old) = (class_of(&attributes.object), class_of(&attributes.old));
    let classes = Inner::built_in("storage.k8s.io", "v1", "storageclasses");
    let allows =
        || server.find(&classes, "", &class).is_some_and(|class| class["allowVolumeExpansion"] == true);
    if class.is_empty() || class != old || !allows() {
        return forbidden(
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support \
             resize",
        );
    }
    Ok(())
}

/// The newest class that is marked as default.
fn default_class(server: &Inner, kind: &Kind, annotation: &str) -> Option<String> {
    let snapshot = server.store.snapshot(&kind.table);
    let all = snapshot.iter().map(|stored| kind.read(stored));
    let marked = all.filter(|class| {
        object::at(class, "metadata.annotations").and_then(|a| a.get(annotation)).and_then(Value::as_str)
            == Some("true")
    });
    let newest = marked.max_by(|a, b| {
        let age = |class: &Value| object::meta_str(class, "creationTimestamp").to_owned();
        age(a).cmp(&age(b)).then_with(|| object::meta_str(b, "name").cmp(object::meta_str(a, "name")))
    });
    newest.map(|class| object::meta_str(&class, "name").to_owned())
}
