//! Lists and sets: the Kubernetes list functions, the list extension and `sets`.

use std::cmp::Ordering;

use crate::eval::{Eval, fail, no_such_overload};
use crate::value::Value;

pub(super) fn call(function: &str, args: &[Value]) -> Option<Eval> {
    if let ("sets.contains" | "sets.intersects" | "sets.equivalent", [Value::List(a), Value::List(b)]) =
        (function, args)
    {
        let has = |list: &[Value], item: &Value| list.iter().any(|found| found.equals(item));
        let contains = |a: &[Value], b: &[Value]| b.iter().all(|item| has(a, item));
        return Some(Ok(Value::Bool(match function {
            "sets.contains" => contains(&a.items, &b.items),
            "sets.intersects" => b.items.iter().any(|item| has(&a.items, item)),
            _ => contains(&a.items, &b.items) && contains(&b.items, &a.items),
        })));
    }
    if let ("lists.range", [Value::Int(count)]) = (function, args) {
        return Some(Ok(Value::list((0..*count).map(Value::Int).collect())));
    }
    let (Value::List(list), rest) = args.split_first()? else { return None };
    let items = &list.items;
    Some(match (function, rest) {
        ("isSorted", []) => Ok(Value::Bool(
            items.windows(2).all(|w| w[0].compare(&w[1]).is_some_and(|o| o != Ordering::Greater)),
        )),
        ("sum", []) => sum(items),
        ("min", []) => extreme("min", items, Ordering::Less),
        ("max", []) => extreme("max", items, Ordering::Greater),
        ("indexOf", [item]) => Ok(position(items.iter().position(|found| found.equals(item)))),
        ("lastIndexOf", [item]) => Ok(position(items.iter().rposition(|found| found.equals(item)))),
        ("slice", [Value::Int(start), Value::Int(end)]) => slice(items, *start, *end),
        ("flatten", []) => Ok(Value::list(flatten(items, 1))),
        ("flatten", [Value::Int(depth)]) if *depth < 0 => fail("level must be non-negative"),
        ("flatten", [Value::Int(depth)]) => Ok(Value::list(flatten(items, *depth))),
        ("sort", []) => sort(items, items),
        ("@sortByAssociatedKeys", [Value::List(keys)]) => sort(items, &keys.items),
        ("distinct", []) => {
            let mut kept: Vec<Value> = Vec::new();
            for item in items {
                if !kept.iter().any(|found| found.equals(item)) {
                    kept.push(item.clone());
                }
            }
            Ok(Value::list(kept))
        }
        ("reverse", []) => Ok(Value::list(items.iter().rev().cloned().collect())),
        ("first", []) => Ok(items.first().map_or(Value::Optional(None), |v| Value::some(v.clone()))),
        ("last", []) => Ok(items.last().map_or(Value::Optional(None), |v| Value::some(v.clone()))),
        _ => return None,
    })
}

fn position(at: Option<usize>) -> Value {
    Value::Int(at.map_or(-1, |at| at as i64))
}

fn sum(items: &[Value]) -> Eval {
    let Some((first, rest)) = items.split_first() else { return Ok(Value::Int(0)) };
    rest.iter().try_fold(first.clone(), |total, item| super::call("_+_", &[total, item.clone()]))
}

fn extreme(name: &str, items: &[Value], wanted: Ordering) -> Eval {
    let Some((first, rest)) = items.split_first() else {
        return fail(format!("{name} called on empty list"));
    };
    let mut best = first;
    for item in rest {
        match item.compare(best) {
            None => return no_such_overload(),
            Some(order) if order == wanted => best = item,
            Some(_) => {}
        }
    }
    Ok(best.clone())
}

fn slice(items: &[Value], start: i64, end: i64) -> Eval {
    let call = format!("cannot slice({start}, {end})");
    if start < 0 || end < 0 {
        return fail(format!("{call}, negative indexes not supported"));
    }
    if start > end {
        return fail(format!("{call}, start index must be less than or equal to end index"));
    }
    match items.get(start as usize..end as usize) {
        Some(part) => Ok(Value::list(part.to_vec())),
        None => fail(format!("{call}, list is length {}", items.len())),
    }
}

fn flatten(items: &[Value], depth: i64) -> Vec<Value> {
    let mut flat = Vec::new();
    for item in items {
        match item {
            Value::List(inner) if depth > 0 => flat.extend(flatten(&inner.items, depth - 1)),
            other => flat.push(other.clone()),
        }
    }
    flat
}

fn sort(items: &[Value], keys: &[Value]) -> Eval {
    if items.len() != keys.len() {
        return fail(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} elements respectively.",
            items.len(),
            keys.len()
        ));
    }
    if keys.windows(2).any(|w| w[0].type_name() != w[1].type_name()) {
        return fail("list elements must have the same type");
    }
    if keys.iter().any(|key| key.compare(key).is_none()) {
        return fail("list elements must be comparable");
    }
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by(|&a, &b| keys[a].compare(&keys[b]).unwrap_or(Ordering::Equal));
    Ok(Value::list(order.into_iter().map(|at| items[at].clone()).collect()))
}
