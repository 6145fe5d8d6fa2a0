//! Whom to trust behind an address: the roots of the configuration, judged and worded as Go does it.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme,
};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use x509_parser::prelude::{GeneralName, X509Certificate};

/// The TLS side of a call to a server whose certificate the roots (in PEM) vouch for.
pub(super) fn config(roots: &[u8]) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let trusted: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(roots).filter_map(Result::ok).collect();
    if trusted.is_empty() && !roots.is_empty() {
        return Err("unable to load root certificates: unable to parse bytes as PEM block".to_owned());
    }
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(trusted.iter().cloned());
    let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone()).build().ok();
    let verifier = Verifier { trusted, chains, schemes: provider.clone() };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// What Go would say of a handshake that failed.
pub(super) fn complaint(error: &std::io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(why)))) => {
            format!("tls: failed to verify certificate: {why}")
        }
        Some(rustls::Error::InvalidMessage(_)) => {
            "http: server gave HTTP response to HTTPS client".to_owned()
        }
        Some(rustls::Error::AlertReceived(alert)) => format!("remote error: tls: {alert:?}"),
        Some(other) => format!("tls: {other}"),
        None if error.kind() == std::io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        None => error.to_string(),
    }
}

/// Why a certificate is not good, in Go's words.
#[derive(Debug)]
struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

fn refused(why: impl Into<String>) -> rustls::Error {
    rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(Refused(why.into())))))
}

/// Go's way of looking at a chain: validity, then the name, then who signed it. A certificate that is itself among
/// the roots needs no signature of another.
#[derive(Debug)]
struct Verifier {
    trusted: Vec<CertificateDer<'static>>,
    chains: Option<Arc<WebPkiServerVerifier>>,
    schemes: Arc<rustls::crypto::CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let (_, parsed) = x509_parser::parse_x509_certificate(end_entity)
            .map_err(|_| refused("x509: malformed certificate"))?;
        check_validity(&parsed, now)?;
        check_name(&parsed, server_name)?;
        if self.trusted.iter().any(|root| root == end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        let unknown = || refused("x509: certificate signed by unknown authority");
        let chains = self.chains.as_ref().ok_or_else(unknown)?;
        chains
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            .map_err(|_| unknown())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.schemes.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.schemes.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.signature_verification_algorithms.supported_schemes()
    }
}

fn check_validity(certificate: &X509Certificate<'_>, now: UnixTime) -> Result<(), rustls::Error> {
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let validity = certificate.validity();
    let text = |seconds: i64| {
        orlop_clock::Timestamp::from_second(seconds).map(crate::server::rfc3339).unwrap_or_default()
    };
    let (begins, ends) = (validity.not_before.timestamp(), validity.not_after.timestamp());
    let (relation, bound) = match seconds {
        now if now < begins => ("before", begins),
        now if now > ends => ("after", ends),
        _ => return Ok(()),
    };
    Err(refused(format!(
        "x509: certificate has expired or is not yet valid: current time {} is {relation} {}",
        text(seconds),
        text(bound)
    )))
}

fn check_name(certificate: &X509Certificate<'_>, wanted: &ServerName<'_>) -> Result<(), rustls::Error> {
    let names: Vec<&GeneralName<'_>> = match certificate.subject_alternative_name() {
        Ok(Some(extension)) => extension.value.general_names.iter().collect(),
        _ => Vec::new(),
    };
    let addresses: Vec<IpAddr> = names.iter().filter_map(|name| address(name)).collect();
    let hosts: Vec<&str> = names
        .iter()
        .filter_map(|name| match name {
            GeneralName::DNSName(host) => Some(*host),
            _ => None,
        })
        .collect();
    match wanted {
        ServerName::IpAddress(ip) => {
            let ip = IpAddr::from(*ip);
            if addresses.contains(&ip) {
                return Ok(());
            }
            if addresses.is_empty() {
                return Err(refused(format!(
                    "x509: cannot validate certificate for {ip} because it doesn't contain any IP SANs"
                )));
            }
            let valid: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            Err(refused(format!("x509: certificate is valid for {}, not {ip}", valid.join(", "))))
        }
        ServerName::DnsName(name) => {
            let name = name.as_ref().to_ascii_lowercase();
            if hosts.iter().any(|pattern| host_matches(pattern, &name)) {
                return Ok(());
            }
            if names.is_empty() {
                let common = certificate.subject().iter_common_name().next();
                let why = if common.is_some() {
                    "x509: certificate relies on legacy Common Name field, use SANs instead".to_owned()
                } else {
                    format!("x509: certificate is not valid for any names, but wanted to match {name}")
                };
                return Err(refused(why));
            }
            if hosts.is_empty() {
                let why = format!("x509: certificate is not valid for any names, but wanted to match {name}");
                return Err(refused(why));
            }
            Err(refused(format!("x509: certificate is valid for {}, not {name}", hosts.join(", "))))
        }
        _ => Err(refused("x509: certificate is not valid for any names")),
    }
}

fn address(name: &GeneralName<'_>) -> Option<IpAddr> {
    let GeneralName::IPAddress(bytes) = name else { return None };
    match bytes.len() {
        4 => <[u8; 4]>::try_from(*bytes).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(*bytes).ok().map(IpAddr::from),
        _ => None,
    }
}

/// A star stands for one whole label, the first.
fn host_matches(pattern: &str, name: &str) -> bool {
    let pattern = pattern.to_ascii_lowercase();
    match pattern.strip_prefix("*.") {
        Some(parent) => name.split_once('.').is_some_and(|(first, rest)| !first.is_empty() && rest == parent),
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_one_label() {
        for (pattern, name, expected) in [
            ("a.b", "a.b", true),
            ("A.b", "a.b", true),
            ("*.b", "a.b", true),
            ("*.b", "x.a.b", false),
            ("*.b", "b", false),
            ("a.b", "c.b", false),
        ] {
            assert_eq!(host_matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
