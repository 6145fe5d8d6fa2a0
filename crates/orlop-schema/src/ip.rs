//! IP addresses and CIDRs as the API server reads them: leniently first, so that it can say what is old-fashioned.

use crate::field::{FieldError, Path, go_quote};
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Reads an address; leading zeros are allowed in IPv4, and an IPv4-mapped IPv6 address counts as IPv4.
pub fn parse_lenient(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        let six: Ipv6Addr = text.parse().ok()?;
        return Some(six.to_ipv4_mapped().map_or(IpAddr::V6(six), IpAddr::V4));
    }
    let mut octets = [0u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        if part.is_empty() || part.len() > 255 || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let digits = part.trim_start_matches('0');
        *octet = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    }
    parts.next().is_none().then_some(IpAddr::V4(Ipv4Addr::from(octets)))
}

/// A network, with the address it was written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    /// The address before the slash.
    pub address: IpAddr,
    /// The length of the prefix.
    pub prefix: u8,
}

impl Cidr {
    /// Reads a network, leniently.
    pub fn parse_lenient(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        let bits_are_six = address.contains(':');
        let address = parse_lenient(address)?;
        if prefix.is_empty() || prefix.len() > 9 || !prefix.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let length: u32 = prefix.parse().ok()?;
        let limit = if bits_are_six { 128 } else { 32 };
        if length > limit {
            return None;
        }
        let length = if bits_are_six && address.is_ipv4() { length.saturating_sub(96) } else { length };
        Some(Self { address, prefix: length as u8 })
    }

    /// The address with the bits behind the prefix cleared.
    pub fn masked(&self) -> IpAddr {
        let keep = u32::from(self.prefix);
        match self.address {
            IpAddr::V4(four) => {
                let mask = u32::MAX.checked_shl(32u32.saturating_sub(keep)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from(u32::from(four) & mask))
            }
            IpAddr::V6(six) => {
                let mask = u128::MAX.checked_shl(128u32.saturating_sub(keep)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from(u128::from(six) & mask))
            }
        }
    }

    /// The canonical text of the network.
    pub fn canonical(&self) -> String {
        format!("{}/{}", self.masked(), self.prefix)
    }
}

fn is_mapped(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok_and(|six| six.to_ipv4_mapped().is_some())
}

fn invalid(path: &Path, text: &str, detail: impl Into<String>) -> FieldError {
    FieldError::invalid(path, &Value::String(text.to_owned()), detail)
}

/// What is wrong with an address in a field that existed before addresses were checked strictly.
pub fn address(path: &Path, text: &str, accepted_before: &[&str]) -> Vec<FieldError> {
    if accepted_before.contains(&text) {
        return Vec::new();
    }
    if parse_lenient(text).is_none() {
        return vec![invalid(path, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")];
    }
    if text.parse::<IpAddr>().is_err() {
        return vec![invalid(path, text, "must not have leading 0s")];
    }
    if is_mapped(text) {
        return vec![invalid(path, text, "must not be an IPv4-mapped IPv6 address")];
    }
    Vec::new()
}

/// What is wrong with an address that must be in canonical form.
pub fn canonical_address(path: &Path, text: &str) -> Vec<FieldError> {
    let wrong = address(path, text, &[]);
    if !wrong.is_empty() {
        return wrong;
    }
    match parse_lenient(text) {
        Some(ip) if ip.to_string() != text => {
            vec![invalid(path, text, format!("must be in canonical form ({})", go_quote(&ip.to_string())))]
        }
        _ => Vec::new(),
    }
}

/// What is wrong with a network in a field that existed before networks were checked strictly.
pub fn cidr(path: &Path, text: &str, accepted_before: &[&str]) -> Vec<FieldError> {
    if accepted_before.contains(&text) {
        return Vec::new();
    }
    let Some(network) = Cidr::parse_lenient(text) else {
        return vec![invalid(path, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")];
    };
    let (head, tail) = text.split_once('/').unwrap_or((text, ""));
    if head.parse::<IpAddr>().is_err() || (tail.len() > 1 && tail.starts_with('0')) {
        return vec![invalid(path, text, "must not have leading 0s in IP or prefix length")];
    }
    if is_mapped(head) {
        return vec![invalid(path, text, "must not have an IPv4-mapped IPv6 address")];
    }
    if network.address != network.masked() {
        return vec![invalid(path, text, "must not have bits set beyond the prefix length")];
    }
    Vec::new()
}

/// What is wrong with a network that must be in canonical form.
pub fn canonical_cidr(path: &Path, text: &str) -> Vec<FieldError> {
    let wrong = cidr(path, text, &[]);
    if !wrong.is_empty() {
        return wrong;
    }
    match Cidr::parse_lenient(text) {
        Some(network) if network.canonical() != text => {
            vec![invalid(
                path,
                text,
                format!("must be in canonical form ({})", go_quote(&network.canonical())),
            )]
        }
        _ => Vec::new(),
    }
}

/// What is wrong with an address that traffic should be sent to.
pub fn endpoint_address(path: &Path, text: &str) -> Vec<FieldError> {
    let Some(ip) = parse_lenient(text) else {
        return vec![invalid(path, text, "must be a valid IP address")];
    };
    let mut wrong = Vec::new();
    if ip.is_unspecified() {
        wrong.push(invalid(path, text, format!("may not be unspecified ({text})")));
    }
    if ip.is_loopback() {
        wrong.push(invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)"));
    }
    let (link_local, link_local_multicast) = match ip {
        IpAddr::V4(four) => (four.is_link_local(), four.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(six) => {
            let [first, ..] = six.segments();
            (first & 0xffc0 == 0xfe80, first & 0xff0f == 0xff02)
        }
    };
    if link_local {
        wrong.push(invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"));
    }
    if link_local_multicast {
        wrong.push(invalid(
            path,
            text,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
        ));
    }
    wrong
}

/// A warning about an address that is accepted only because it was accepted before.
pub fn address_warning(path: &Path, text: &str) -> Option<String> {
    let ip = parse_lenient(text)?;
    match text.parse::<IpAddr>() {
        Ok(strict) if !is_mapped(text) => (strict.is_ipv6() && strict.to_string() != text).then(|| {
            format!(
                "{path}: IPv6 address {} should be in RFC 5952 canonical format ({})",
                go_quote(text),
                go_quote(&strict.to_string())
            )
        }),
        _ => Some(format!(
            "{path}: non-standard IP address {} is invalid: use {}",
            go_quote(text),
            go_quote(&ip.to_string())
        )),
    }
}

/// Warnings about a network that is ambiguous or not canonical.
pub fn cidr_warnings(path: &Path, text: &str) -> Vec<String> {
    let Some(network) = Cidr::parse_lenient(text) else { return Vec::new() };
    let mut warnings = Vec::new();
    let quoted = go_quote(text);
    if network.address != network.masked() {
        let bits = if network.address.is_ipv4() { 32 } else { 128 };
        warnings.push(format!(
            "{path}: CIDR value {quoted} is ambiguous in this context (should be {} or {}?)",
            go_quote(&network.canonical()),
            go_quote(&format!("{}/{bits}", network.address))
        ));
    }
    let (head, tail) = text.split_once('/').unwrap_or((text, ""));
    if head.parse::<IpAddr>().is_err() || (tail.len() > 1 && tail.starts_with('0')) || is_mapped(head) {
        warnings.push(format!(
            "{path}: non-standard CIDR value {quoted} is invalid: use {}",
            go_quote(&network.canonical())
        ));
    }
    let spelled = format!("{}/{}", network.address, network.prefix);
    if warnings.is_empty() && network.address.is_ipv6() && spelled != text {
        warnings.push(format!(
            "{path}: IPv6 CIDR value {quoted} should be in RFC 5952 canonical format ({})",
            go_quote(&spelled)
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_leniently_and_judged_strictly() {
        let path = Path::new("ip");
        for (text, detail) in [
            ("10.0.0.1", ""),
            ("2001:DB8::1", ""),
            ("x", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
            ("10.0.0.01", "must not have leading 0s"),
            ("::ffff:10.0.0.1", "must not be an IPv4-mapped IPv6 address"),
            ("10.0.0.256", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
        ] {
            let found = address(&path, text, &[]).first().map_or(String::new(), |e| e.detail.clone());
            assert_eq!(found, detail, "{text}");
        }
        assert!(address(&path, "x", &["x"]).is_empty());
    }

    #[test]
    fn networks_must_not_have_stray_bits() {
        let path = Path::new("cidr");
        for (text, detail) in [
            ("10.0.0.0/8", ""),
            ("10.0.0.1/8", "must not have bits set beyond the prefix length"),
            ("10.0.0.0/08", "must not have leading 0s in IP or prefix length"),
            ("10.0.0.0/33", "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"),
            ("::/0", ""),
        ] {
            let found = cidr(&path, text, &[]).first().map_or(String::new(), |e| e.detail.clone());
            assert_eq!(found, detail, "{text}");
        }
    }
}
