//! The strategies, one row per kind.

use super::Deletion::{Background, Orphan, Unsupported};
use super::Generation::{self, Everything, Fixed, Late, On, Untracked};
use super::Status::{self, AtCreation, Only, Plain, WithMetadata, WithoutLabels};
use super::{Deletion, Strategy};

const SPEC: Generation = On(&["/spec"]);

/// Which PUTs are allowed: neither on a missing name nor without a resource version.
const NEITHER: (bool, bool) = (false, false);
/// A PUT on a missing name creates.
const CREATES: (bool, bool) = (true, false);
/// A PUT without a resource version overwrites.
const OVERWRITES: (bool, bool) = (false, true);
/// Both.
const BOTH: (bool, bool) = (true, true);

const fn row(
    group: &'static str,
    kind: &'static str,
    (create_on_update, unconditional_update): (bool, bool),
    status: Status,
    generation: Generation,
    default_deletion: Deletion,
) -> Strategy {
    Strategy {
        group,
        kind,
        create_on_update,
        unconditional_update,
        default_deletion,
        returns_deleted: false,
        status,
        generation,
    }
}

impl Strategy {
    /// Deletion answers with the object.
    const fn returning(self) -> Self {
        Self { returns_deleted: true, ..self }
    }
}

const ADMISSION: &str = "admissionregistration.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) const STRATEGIES: &[Strategy] = &[
    row("", "ConfigMap", OVERWRITES, Plain, Untracked, Background),
    row("", "Endpoints", BOTH, Plain, Untracked, Background),
    row("", "Event", BOTH, Plain, Untracked, Unsupported),
    row("", "LimitRange", BOTH, Plain, Untracked, Background),
    row("", "Namespace", OVERWRITES, WithMetadata, Untracked, Background),
    row("", "Node", OVERWRITES, AtCreation, Untracked, Background),
    row("", "PersistentVolume", OVERWRITES, WithMetadata, Untracked, Background).returning(),
    row("", "PersistentVolumeClaim", OVERWRITES, WithMetadata, Untracked, Background).returning(),
    row("", "Pod", OVERWRITES, WithMetadata, SPEC, Background).returning(),
    row("", "PodTemplate", OVERWRITES, Plain, On(&["/template"]), Background).returning(),
    row("", "ReplicationController", OVERWRITES, WithMetadata, SPEC, Orphan),
    row("", "ResourceQuota", OVERWRITES, WithMetadata, Untracked, Background).returning(),
    row("", "Secret", OVERWRITES, Plain, Untracked, Background),
    row("", "Service", BOTH, WithMetadata, Untracked, Background).returning(),
    row("", "ServiceAccount", OVERWRITES, Plain, Untracked, Background).returning(),
    row(ADMISSION, "MutatingAdmissionPolicy", NEITHER, Plain, SPEC, Background),
    row(ADMISSION, "MutatingAdmissionPolicyBinding", NEITHER, Plain, SPEC, Background),
    row(ADMISSION, "MutatingWebhookConfiguration", NEITHER, Plain, On(&["/webhooks"]), Background),
    row(ADMISSION, "ValidatingAdmissionPolicy", NEITHER, Only, SPEC, Background),
    row(ADMISSION, "ValidatingAdmissionPolicyBinding", NEITHER, Plain, SPEC, Background),
    row(ADMISSION, "ValidatingWebhookConfiguration", NEITHER, Plain, On(&["/webhooks"]), Background),
    row("apiextensions.k8s.io", "CustomResourceDefinition", NEITHER, WithMetadata, SPEC, Background),
    row("apiregistration.k8s.io", "APIService", NEITHER, Only, Untracked, Background),
    row("apps", "ControllerRevision", OVERWRITES, Plain, Untracked, Background),
    row("apps", "DaemonSet", OVERWRITES, WithMetadata, SPEC, Background),
    row("apps", "Deployment", OVERWRITES, WithoutLabels, On(&["/spec", "/metadata/annotations"]), Background),
    row("apps", "ReplicaSet", OVERWRITES, WithMetadata, SPEC, Background),
    row("apps", "StatefulSet", OVERWRITES, WithMetadata, SPEC, Background),
    row("autoscaling", "HorizontalPodAutoscaler", OVERWRITES, WithMetadata, Untracked, Background),
    row("batch", "CronJob", OVERWRITES, WithMetadata, SPEC, Background),
    row("batch", "Job", OVERWRITES, WithMetadata, SPEC, Orphan),
    row("certificates.k8s.io", "CertificateSigningRequest", OVERWRITES, WithMetadata, Untracked, Background),
    row("coordination.k8s.io", "Lease", CREATES, Plain, Untracked, Background),
    row("discovery.k8s.io", "EndpointSlice", OVERWRITES, Plain, Everything, Background),
    row("events.k8s.io", "Event", BOTH, Plain, Untracked, Unsupported),
    row("flowcontrol.apiserver.k8s.io", "FlowSchema", OVERWRITES, Only, SPEC, Background),
    row("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration", OVERWRITES, Only, SPEC, Background),
    row("networking.k8s.io", "IPAddress", OVERWRITES, Plain, Untracked, Background),
    row("networking.k8s.io", "Ingress", OVERWRITES, WithMetadata, SPEC, Background),
    row("networking.k8s.io", "IngressClass", OVERWRITES, Plain, SPEC, Background),
    row("networking.k8s.io", "NetworkPolicy", OVERWRITES, Plain, SPEC, Background),
    row("networking.k8s.io", "ServiceCIDR", OVERWRITES, Only, Untracked, Background),
    row("node.k8s.io", "RuntimeClass", CREATES, Plain, Untracked, Background),
    row("policy", "PodDisruptionBudget", NEITHER, WithMetadata, SPEC, Background),
    row(RBAC, "ClusterRole", BOTH, Plain, Untracked, Background),
    row(RBAC, "ClusterRoleBinding", BOTH, Plain, Untracked, Background),
    row(RBAC, "Role", BOTH, Plain, Untracked, Background),
    row(RBAC, "RoleBinding", BOTH, Plain, Untracked, Background),
    row("resource.k8s.io", "DeviceClass", OVERWRITES, Plain, SPEC, Background).returning(),
    row("resource.k8s.io", "ResourceClaim", OVERWRITES, Only, Untracked, Background).returning(),
    row("resource.k8s.io", "ResourceClaimTemplate", OVERWRITES, Plain, Untracked, Background).returning(),
    row("resource.k8s.io", "ResourceSlice", OVERWRITES, Plain, SPEC, Background).returning(),
    row("scheduling.k8s.io", "PriorityClass", OVERWRITES, Plain, Fixed, Background),
    row("storage.k8s.io", "CSIDriver", NEITHER, Plain, Late(&["/spec"]), Background).returning(),
    row("storage.k8s.io", "CSINode", NEITHER, Plain, Untracked, Background).returning(),
    row("storage.k8s.io", "CSIStorageCapacity", NEITHER, Plain, Untracked, Background),
    row("storage.k8s.io", "StorageClass", OVERWRITES, Plain, Untracked, Background).returning(),
    row("storage.k8s.io", "VolumeAttachment", NEITHER, Only, Untracked, Background).returning(),
    row("storage.k8s.io", "VolumeAttributesClass", OVERWRITES, Plain, Untracked, Background).returning(),
];
