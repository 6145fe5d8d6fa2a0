//! Writes that change nothing but the time of writing must not count as changes.

use serde_json::Value;

use super::entries::entries_of;

/// Puts the times of the live managed fields back if `new` differs from `live` in nothing else.
pub fn keep_times(live: &Value, new: &mut Value) {
    let (Some(old_entries), Some(new_entries)) = (entries_of(live), entries_of(new)) else { return };
    let same_entries = old_entries.len() == new_entries.len()
        && old_entries.iter().zip(new_entries).all(|(old, new)| same_but(old, new, &["time"]));
    if !same_entries || !same_but(live, new, &["metadata", "managedFields"]) {
        return;
    }
    let old_entries = Value::Array(old_entries.clone());
    if let Some(entries) = new.get_mut("metadata").and_then(|metadata| metadata.get_mut("managedFields")) {
        *entries = old_entries;
    }
}

/// Whether two objects are equal outside the value at `path`.
fn same_but(left: &Value, right: &Value, path: &[&str]) -> bool {
    let Some((head, rest)) = path.split_first() else { return true };
    let (Value::Object(left), Value::Object(right)) = (left, right) else { return left == right };
    let others = |map| -> Vec<(&String, &Value)> {
        let map: &serde_json::Map<String, Value> = map;
        map.iter().filter(|(key, _)| key != head).collect()
    };
    others(left) == others(right)
        && match (left.get(*head), right.get(*head)) {
            (Some(left), Some(right)) => same_but(left, right, rest),
            _ => rest.is_empty() || left.get(*head) == right.get(*head),
        }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_time_alone_is_no_change() {
        let object = |data: &str, time: &str| json!({"data": data, "metadata": {"name": "x", "managedFields": [{"manager": "m", "time": time}]}});
        let cases = [
            (object("1", "t1"), object("1", "t2"), object("1", "t1")),
            (object("1", "t1"), object("2", "t2"), object("2", "t2")),
            (json!({}), object("1", "t2"), object("1", "t2")),
        ];
        for (live, new, want) in cases {
            let mut got = new;
            keep_times(&live, &mut got);
            assert_eq!(got, want);
        }
    }
}
