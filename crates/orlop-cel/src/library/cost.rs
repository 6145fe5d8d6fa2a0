//! What a call costs when it runs, by the sizes of its values.

use crate::value::Value;

/// Cost of one call; functions without a row cost one.
pub(crate) fn cost(function: &str, overload: &str, args: &[Value], result: Option<&Value>) -> u64 {
    let size = |at: usize| args.get(at).map_or(1, Value::size);
    let tenth = |n: u64| n.div_ceil(10);
    let regex = |pattern: u64| tenth(size(0) + 1).saturating_mul(pattern.div_ceil(4));
    let sorted = |at: usize| {
        let texts = matches!(args.get(at), Some(Value::List(l)) if matches!(l.items.first(), Some(Value::String(_) | Value::Bytes(_))));
        let square = size(at).saturating_mul(size(at));
        (square as f64 * if texts { 2.1 } else { 2.0 }) as u64 + 11
    };
    match function {
        "sets.contains" | "sets.intersects" => size(0).saturating_mul(size(1)) + 1,
        "sets.equivalent" => size(0).saturating_mul(size(1)).saturating_mul(2) + 1,
        "slice" | "lists.range" => result.map_or(1, Value::size) + 11,
        "reverse" | "flatten" => size(0) + 11,
        "distinct" | "sort" => sorted(0),
        "@sortByAssociatedKeys" => sorted(1),
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => args.first().map_or(0, traversal),
        "check" => 350_000,
        "fieldSelector" | "labelSelector" => 10 + tenth(size(1)) + size(1).div_ceil(2) * 50,
        "jsonpatch.escapeKey"
        | "url"
        | "lowerAscii"
        | "upperAscii"
        | "substring"
        | "trim"
        | "cidr"
        | "isIP"
        | "isCIDR"
        | "quantity"
        | "isQuantity"
        | "semver"
        | "isSemver" => tenth(size(0)),
        "ip" if overload != "cidr_ip" => tenth(size(0)),
        "replace" | "split" | "ip.isCanonical" => size(0).div_ceil(5),
        "join" => result.map_or(1, Value::size).div_ceil(5),
        "find" | "findAll" => regex(size(1)),
        "containsIP" => {
            tenth(size(0) * 2) + if overload == "cidr_contains_ip_string" { tenth(size(1)) } else { 0 }
        }
        "containsCIDR" => {
            tenth(size(0) * 2)
                + tenth(size(0))
                + 1
                + if overload == "cidr_contains_cidr_string" { tenth(size(1)) } else { 0 }
        }
        "validate" => match args {
            [Value::Format(format), text] => {
                tenth(text.size() + 1).saturating_mul(format.pattern_len.div_ceil(4))
            }
            _ => 1,
        },
        "_==_" | "_!=_" => match args.first() {
            Some(
                Value::Quantity(_)
                | Value::Ip(_)
                | Value::Cidr(_)
                | Value::Format(_)
                | Value::Url(_)
                | Value::Semver(_)
                | Value::Check(_)
                | Value::Decision(_),
            ) => 1,
            _ => tenth(size(0).min(size(1))),
        },
        _ => match overload {
            "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
            | "strings_quote" | "string_format" => tenth(size(0)),
            "in_list" => size(1),
            "add_string" | "add_bytes" => tenth(size(0) + size(1)),
            "matches" | "matches_string" => regex(size(1)),
            "contains_string" => tenth(size(0)).saturating_mul(tenth(size(1))),
            _ if overload.starts_with("less") || overload.starts_with("greater") => {
                tenth(size(0).min(size(1)))
            }
            _ => 1,
        },
    }
}

/// Cost of walking over everything in a value.
fn traversal(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64 / 10,
        Value::Bytes(bytes) => bytes.len() as u64 / 10,
        Value::List(list) => list.items.iter().map(traversal).sum(),
        Value::Map(map) => map.values().map(|v| traversal(v) + 1).sum(),
        _ => 1,
    }
}
