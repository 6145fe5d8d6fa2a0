//! The Kubernetes types: quantities, URLs, addresses and networks, versions and named formats.

use std::cmp::Ordering;
use std::net::IpAddr;
use std::sync::Arc;

use orlop_schema::field::go_quote;
use orlop_schema::ip::Cidr;
use orlop_schema::quantity::{Format, Quantity};

use crate::eval::{Eval, fail};
use crate::formats;
use crate::semver::Semver;
use crate::url::Url;
use crate::value::{Key, Value};

pub(super) fn call(function: &str, args: &[Value]) -> Option<Eval> {
    if let Some(name) = function.strip_prefix("format.").filter(|_| args.is_empty()) {
        return formats::named(name).map(|format| Ok(Value::Format(format)));
    }
    match args.first()? {
        Value::String(text) => parse(function, text, &args[1..]),
        Value::Quantity(quantity) => of_quantity(function, quantity, &args[1..]),
        Value::Url(url) => of_url(function, url),
        Value::Ip(ip) => of_ip(function, *ip),
        Value::Cidr(cidr) => of_cidr(function, cidr, &args[1..]),
        Value::Semver(version) => of_semver(function, version, &args[1..]),
        Value::Format(format) => match (function, &args[1..]) {
            ("validate", [Value::String(text)]) => {
                let found = (format.check)(text);
                let list = || Value::list(found.iter().map(|why| Value::string(why.as_str())).collect());
                Some(Ok(if found.is_empty() { Value::Optional(None) } else { Value::some(list()) }))
            }
            _ => None,
        },
        _ => None,
    }
}

fn result(value: Result<Value, String>) -> Eval {
    value.map_or_else(fail, Ok)
}

fn parse(function: &str, text: &str, rest: &[Value]) -> Option<Eval> {
    let truth = |value: bool| Some(Ok(Value::Bool(value)));
    let version = || match rest {
        [Value::Bool(true)] => Semver::parse_normalized(text),
        _ => Semver::parse(text),
    };
    match function {
        "quantity" => Some(result(
            Quantity::parse(text).map(|q| Value::Quantity(Arc::new(q))).map_err(|why| why.to_string()),
        )),
        "isQuantity" => truth(Quantity::parse(text).is_ok()),
        "url" => Some(result(
            Url::parse(text)
                .map(|url| Value::Url(Arc::new(url)))
                .map_err(|why| format!("URL parse error during conversion from string: {why}")),
        )),
        "isURL" => truth(Url::parse(text).is_ok()),
        "ip" => Some(result(address(text).map(Value::Ip))),
        "isIP" => truth(address(text).is_ok()),
        "ip.isCanonical" => Some(result(address(text).map(|ip| Value::Bool(ip.to_string() == text)))),
        "cidr" => Some(result(network(text).map(Value::Cidr))),
        "isCIDR" => truth(network(text).is_ok()),
        "semver" => Some(result(version().map(|v| Value::Semver(Arc::new(v))))),
        "isSemver" => truth(version().is_ok()),
        "format.named" => {
            Some(Ok(formats::named(text).map_or(Value::Optional(None), |f| Value::some(Value::Format(f)))))
        }
        _ => None,
    }
}

fn address(text: &str) -> Result<IpAddr, String> {
    let shown = go_quote(text);
    if text.contains('%') && text.contains(':') {
        return Err(format!("IP address {shown} with zone value is not allowed"));
    }
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(six)) if six.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {shown} is not allowed"))
        }
        Ok(ip) => Ok(ip),
        Err(_) => Err(format!(
            "IP Address {shown} parse error during conversion from string: ParseAddr({shown}): {}",
            address_fault(text)
        )),
    }
}

/// Why an address cannot be read.
fn address_fault(text: &str) -> &'static str {
    let Some(first) = text.chars().find(|c| matches!(c, '.' | ':')) else { return "unable to parse IP" };
    if first == ':' {
        return "each colon-separated field must have at least one digit";
    }
    if text.chars().any(|c| !c.is_ascii_digit() && c != '.') {
        return "unexpected character";
    }
    if text.split('.').any(str::is_empty) {
        return "IPv4 field must have at least one digit";
    }
    if text.split('.').any(|part| part.len() > 1 && part.starts_with('0')) {
        return "IPv4 field has octet with leading zero";
    }
    if text.split('.').any(|part| part.len() > 3 || part.parse::<u16>().is_ok_and(|n| n > 255)) {
        return "IPv4 field has value >255";
    }
    if text.split('.').count() > 4 { "IPv4 address too long" } else { "IPv4 address too short" }
}

fn network(text: &str) -> Result<Cidr, String> {
    let shown = go_quote(text);
    let refuse = |why: &str| {
        Err(format!(
            "network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix({shown}): {why}"
        ))
    };
    let Some((ip, bits)) = text.rsplit_once('/') else { return refuse("no '/'") };
    let Ok(ip) = ip.parse::<IpAddr>() else {
        return refuse(&format!("ParseAddr({}): {}", go_quote(ip), address_fault(ip)));
    };
    let most = if ip.is_ipv4() { 32 } else { 128 };
    if bits.is_empty()
        || !bits.bytes().all(|b| b.is_ascii_digit())
        || (bits.len() > 1 && bits.starts_with('0'))
    {
        return refuse(&format!("bad bits after slash: {}", go_quote(bits)));
    }
    match bits.parse::<u8>() {
        Ok(prefix) if prefix <= most => match ip {
            IpAddr::V6(six) if six.to_ipv4_mapped().is_some() => Err(format!(
                "network address parse error during conversion from string: IPv4-mapped IPv6 address {shown} is not allowed"
            )),
            ip => Ok(Cidr { address: ip, prefix }),
        },
        _ => refuse("prefix length out of range"),
    }
}

fn of_quantity(function: &str, quantity: &Quantity, rest: &[Value]) -> Option<Eval> {
    let compare = |other: &Quantity| quantity.minus(other).sign();
    let made = |q: Quantity| Value::Quantity(Arc::new(q));
    let whole = |q: &Quantity| {
        let value = q.value();
        let exact = q.minus(&Quantity::whole(value, Format::DecimalSi)).is_zero();
        exact.then_some(value)
    };
    Some(Ok(match (function, rest) {
        ("sign", []) => Value::Int(i64::from(quantity.sign())),
        ("isInteger", []) => Value::Bool(whole(quantity).is_some()),
        ("asInteger", []) => match whole(quantity) {
            Some(value) => Value::Int(value),
            None => return Some(fail("cannot convert value to integer")),
        },
        ("asApproximateFloat", []) => Value::Double(quantity.approximate()),
        ("isGreaterThan", [Value::Quantity(other)]) => Value::Bool(compare(other) > 0),
        ("isLessThan", [Value::Quantity(other)]) => Value::Bool(compare(other) < 0),
        ("compareTo", [Value::Quantity(other)]) => Value::Int(i64::from(compare(other).signum())),
        ("add", [Value::Quantity(other)]) => made(quantity.plus(other)),
        ("add", [Value::Int(n)]) => made(quantity.plus(&Quantity::whole(*n, Format::DecimalSi))),
        ("sub", [Value::Quantity(other)]) => made(quantity.minus(other)),
        ("sub", [Value::Int(n)]) => made(quantity.minus(&Quantity::whole(*n, Format::DecimalSi))),
        _ => return None,
    }))
}

fn of_url(function: &str, url: &Url) -> Option<Eval> {
    Some(Ok(match function {
        "getScheme" => Value::string(url.scheme.as_str()),
        "getHost" => Value::string(url.host.as_str()),
        "getHostname" => Value::string(url.hostname()),
        "getPort" => Value::string(url.port()),
        "getEscapedPath" => Value::string(url.escaped_path()),
        "getQuery" => {
            let values =
                |values: &[String]| Value::list(values.iter().map(|v| Value::string(v.as_str())).collect());
            Value::Map(Arc::new(
                url.query.iter().map(|(k, v)| (Key::String(k.as_str().into()), values(v))).collect(),
            ))
        }
        _ => return None,
    }))
}

fn of_ip(function: &str, ip: IpAddr) -> Option<Eval> {
    let link_local = match ip {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.segments()[0] & 0xffc0 == 0xfe80,
    };
    let link_local_multicast = match ip {
        IpAddr::V4(four) => four.octets()[..3] == [224, 0, 0],
        IpAddr::V6(six) => six.segments()[0] & 0xff0f == 0xff02,
    };
    let broadcast = matches!(ip, IpAddr::V4(four) if four.is_broadcast());
    Some(Ok(match function {
        "family" => Value::Int(if ip.is_ipv4() { 4 } else { 6 }),
        "isUnspecified" => Value::Bool(ip.is_unspecified()),
        "isLoopback" => Value::Bool(ip.is_loopback()),
        "isLinkLocalMulticast" => Value::Bool(link_local_multicast),
        "isLinkLocalUnicast" => Value::Bool(link_local),
        "isGlobalUnicast" => Value::Bool(
            !ip.is_unspecified() && !ip.is_loopback() && !ip.is_multicast() && !link_local && !broadcast,
        ),
        _ => return None,
    }))
}

fn of_cidr(function: &str, cidr: &Cidr, rest: &[Value]) -> Option<Eval> {
    let contains = |ip: IpAddr| {
        let same = ip.is_ipv4() == cidr.address.is_ipv4();
        same && Cidr { address: ip, prefix: cidr.prefix }.masked() == cidr.masked()
    };
    let within = |other: &Cidr| other.prefix >= cidr.prefix && contains(other.masked());
    match (function, rest) {
        ("ip", []) => Some(Ok(Value::Ip(cidr.address))),
        ("prefixLength", []) => Some(Ok(Value::Int(i64::from(cidr.prefix)))),
        ("masked", []) => Some(Ok(Value::Cidr(Cidr { address: cidr.masked(), prefix: cidr.prefix }))),
        ("containsIP", [Value::Ip(ip)]) => Some(Ok(Value::Bool(contains(*ip)))),
        ("containsIP", [Value::String(text)]) => Some(result(
            address(text).map(|ip| Value::Bool(contains(ip))).map_err(|_| "no such overload".to_owned()),
        )),
        ("containsCIDR", [Value::Cidr(other)]) => Some(Ok(Value::Bool(within(other)))),
        ("containsCIDR", [Value::String(text)]) => Some(result(
            network(text).map(|other| Value::Bool(within(&other))).map_err(|_| "no such overload".to_owned()),
        )),
        _ => None,
    }
}

fn of_semver(function: &str, version: &Semver, rest: &[Value]) -> Option<Eval> {
    let number = |at: usize| Value::Int(i64::try_from(version.numbers[at]).unwrap_or(i64::MAX));
    Some(Ok(match (function, rest) {
        ("major", []) => number(0),
        ("minor", []) => number(1),
        ("patch", []) => number(2),
        ("isGreaterThan", [Value::Semver(other)]) => Value::Bool(version.compare(other) == Ordering::Greater),
        ("isLessThan", [Value::Semver(other)]) => Value::Bool(version.compare(other) == Ordering::Less),
        ("compareTo", [Value::Semver(other)]) => Value::Int(version.compare(other) as i64),
        _ => return None,
    }))
}
