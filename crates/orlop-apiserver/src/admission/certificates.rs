//! `CertificateApproval` and `CertificateSigning`: who may approve and sign requests for a signer.

use super::{Attributes, refusal};
use crate::auth::{self, Decision};
use crate::kind::Kind;
use crate::object;
use crate::server::Inner;
use crate::status::ApiError;

const GROUP: &str = "certificates.k8s.io";

/// Refuses approvals by those who may not approve for the signer.
pub(super) fn check_approval(server: &Inner, kind: &Kind, attributes: &Attributes) -> Result<(), ApiError> {
    if is_request(kind) && attributes.subresource == "approval" {
        return check(server, kind, attributes, "approve");
    }
    Ok(())
}

/// Refuses certificates and conditions from those who may not sign for the signer.
pub(super) fn check_signing(server: &Inner, kind: &Kind, attributes: &Attributes) -> Result<(), ApiError> {
    if !is_request(kind) || attributes.subresource != "status" {
        return Ok(());
    }
    let unchanged = |field: &str| attributes.object["status"][field] == attributes.old["status"][field];
    if unchanged("certificate") && unchanged("conditions") {
        return Ok(());
    }
    check(server, kind, attributes, "sign")
}

fn is_request(kind: &Kind) -> bool {
    kind.group == GROUP && kind.plural == "certificatesigningrequests"
}

/// By the signer's name, or for all signers of its domain.
fn check(server: &Inner, kind: &Kind, attributes: &Attributes, verb: &str) -> Result<(), ApiError> {
    let signer = object::text(&attributes.old["spec"], "signerName");
    let may = |name: &str| {
        let wanted = auth::Attributes::resource(verb, GROUP, "signers", "", "", name);
        matches!(server.auth.decide(server, &attributes.user, &wanted), Decision::Allowed(_))
    };
    let domain = signer.split('/').next().unwrap_or_default();
    if may(signer) || may(&format!("{domain}/*")) {
        return Ok(());
    }
    let why = format!("user not permitted to {verb} requests with signerName \"{signer}\"");
    Err(refusal::forbidden(kind, attributes, &why))
}
