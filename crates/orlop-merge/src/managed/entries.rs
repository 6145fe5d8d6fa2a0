//! `metadata.managedFields`: entries as stored, and the managers they stand for.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::fieldset::FieldSet;
use crate::go;
use crate::updater::{Managers, Ownership};

/// How a manager came to own fields; sorts as the names do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

/// What tells managers apart. Appliers are one over all versions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub(crate) manager: String,
    pub(crate) operation: Operation,
    /// Empty for appliers.
    pub(crate) api_version: String,
    pub(crate) subresource: String,
}

impl Identity {
    pub(crate) fn new(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let api_version = if operation == Operation::Apply { "" } else { api_version };
        Self {
            manager: manager.into(),
            operation,
            api_version: api_version.into(),
            subresource: subresource.into(),
        }
    }

    /// The identity as the original writes it; lists of managers are sorted by this text.
    pub(crate) fn text(&self) -> String {
        let members = [
            ("manager", self.manager.as_str()),
            ("operation", self.operation.name()),
            ("apiVersion", &self.api_version),
            ("subresource", &self.subresource),
        ];
        let members: Vec<String> = members
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| format!("\"{name}\":{}", go::json(&Value::from(value))))
            .collect();
        format!("{{{}}}", members.join(","))
    }
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// All managers of an object, and when each wrote last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Managed {
    pub(crate) fields: Managers<Identity>,
    pub(crate) times: BTreeMap<Identity, String>,
}

impl Managed {
    /// The managers of these entries; an error if any entry is not valid.
    pub(crate) fn decode(entries: &[Value]) -> Result<Self, String> {
        let mut managed = Self::default();
        for (index, entry) in entries.iter().enumerate() {
            let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
            let operation = match text("operation") {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return Err("operation must be `Apply` or `Update`".into()),
            };
            let api_version = text("apiVersion");
            if api_version.is_empty() {
                return Err("apiVersion must not be empty".into());
            }
            match text("fieldsType") {
                "FieldsV1" => {}
                "" => return Err(format!("missing fieldsType in managed fields entry {index}")),
                other => {
                    return Err(format!(
                        "invalid fieldsType {} in managed fields entry {index}",
                        go::quote(other)
                    ));
                }
            }
            let identity = Identity::new(text("manager"), operation, api_version, text("subresource"));
            let (set, canonical) = FieldSet::read_fields_v1(entry.get("fieldsV1").unwrap_or(&Value::Null))
                .map_err(|error| format!("error decoding versioned set: {error}"))?;
            if let Some(time) = entry.get("time").and_then(Value::as_str) {
                managed.times.insert(identity.clone(), time.to_owned());
            }
            let origin = canonical.then_some(index);
            managed.fields.insert(identity, Ownership { origin, ..Ownership::new(set, api_version) });
        }
        Ok(managed)
    }

    /// The entries, sorted by operation, time, manager, version and subresource; none if there are no managers.
    pub(crate) fn encode(&self, mut stored: Stored<'_>) -> Option<Vec<Value>> {
        if self.fields.is_empty() {
            return None;
        }
        let mut sorted: Vec<_> = self
            .fields
            .iter()
            .map(|(identity, ownership)| {
                let time = self.times.get(identity).map(String::as_str);
                (identity, ownership, time, time.and_then(unix_seconds).unwrap_or_default())
            })
            .collect();
        sorted.sort_by(|(left, left_owns, _, left_time), (right, right_owns, _, right_time)| {
            (left.operation, left_time, &left.manager, &left_owns.api_version, &left.subresource).cmp(&(
                right.operation,
                right_time,
                &right.manager,
                &right_owns.api_version,
                &right.subresource,
            ))
        });
        let entries = sorted.into_iter().map(|(identity, ownership, time, _)| {
            let fields = ownership.origin.and_then(|origin| stored.take_fields(origin));
            entry(identity, ownership, time, fields.unwrap_or_else(|| ownership.set.to_fields_v1()))
        });
        Some(entries.collect())
    }

    /// Writes the entries into an object; `stored` are those that were decoded.
    pub(crate) fn write(&self, object: &mut Value, stored: Stored<'_>) {
        remove_entries(object);
        let Some(entries) = self.encode(stored) else { return };
        let Value::Object(object) = object else { return };
        let metadata = object.entry("metadata").or_insert(Value::Null);
        if metadata.is_null() {
            *metadata = Value::Object(Map::new());
        }
        if let Value::Object(metadata) = metadata {
            metadata.insert("managedFields".into(), Value::Array(entries));
        }
    }
}

/// The entries that were decoded.
#[derive(Default)]
pub(crate) enum Stored<'a> {
    #[default]
    None,
    Borrowed(&'a [Value]),
    Owned(Vec<Value>),
}

impl Stored<'_> {
    pub(crate) fn entries(&self) -> &[Value] {
        match self {
            Self::None => &[],
            Self::Borrowed(entries) => entries,
            Self::Owned(entries) => entries,
        }
    }

    /// The `fieldsV1` of an entry, which is asked for once.
    fn take_fields(&mut self, index: usize) -> Option<Value> {
        match self {
            Self::None => None,
            Self::Borrowed(entries) => entries.get(index)?.get("fieldsV1").cloned(),
            Self::Owned(entries) => entries.get_mut(index)?.get_mut("fieldsV1").map(Value::take),
        }
    }
}

/// The raw entries of an object, if it has a list of them.
pub(crate) fn entries_of(object: &Value) -> Option<&Vec<Value>> {
    object.get("metadata")?.get("managedFields")?.as_array()
}

/// Removes `metadata.managedFields`.
pub(crate) fn remove_entries(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
}

/// A copy of the object without `metadata.managedFields`.
pub(crate) fn without_entries(object: &Value) -> Value {
    let Value::Object(object) = object else { return object.clone() };
    let mut copy = Map::new();
    for (key, value) in object {
        let value = match value {
            Value::Object(metadata) if key == "metadata" => {
                let kept = metadata.iter().filter(|(key, _)| *key != "managedFields");
                Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect())
            }
            value => value.clone(),
        };
        copy.insert(key.clone(), value);
    }
    Value::Object(copy)
}

/// Seconds since 1970 of an RFC 3339 time.
pub(crate) fn unix_seconds(time: &str) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| time.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    if !(1..=12).contains(&month) {
        return None;
    }
    // Years from March, so that the leap day is the last of its year.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days =
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468;
    let zone = time.get(19..)?.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    let offset = match zone.split_at_checked(1) {
        Some((sign @ ("+" | "-"), rest)) => {
            let (hours, minutes) = rest.split_once(':')?;
            let offset = hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60;
            if sign == "+" { offset } else { -offset }
        }
        _ => 0,
    };
    Some(days * 86_400 + hour * 3600 + minute * 60 + second - offset)
}

fn entry(identity: &Identity, ownership: &Ownership, time: Option<&str>, fields: Value) -> Value {
    let mut entry = Map::new();
    let mut text = |key: &str, value: &str| {
        if !value.is_empty() {
            entry.insert(key.into(), value.into());
        }
    };
    text("apiVersion", &ownership.api_version);
    text("fieldsType", "FieldsV1");
    text("manager", &identity.manager);
    text("operation", identity.operation.name());
    text("subresource", &identity.subresource);
    text("time", time.unwrap_or_default());
    entry.insert("fieldsV1".into(), fields);
    Value::Object(entry)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_round_trip_and_sort() {
        let entry = |manager: &str, operation: &str, time: &str| {
            json!({"manager": manager, "operation": operation, "apiVersion": "v1", "time": time,
                   "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}}})
        };
        let sorted = vec![
            entry("z", "Apply", "2026-01-01T00:00:00Z"),
            entry("a", "Apply", "2026-01-01T00:00:01Z"),
            entry("b", "Apply", "2026-01-01T00:00:01Z"),
            entry("a", "Update", "2025-01-01T00:00:00Z"),
        ];
        let mut shuffled = sorted.clone();
        shuffled.reverse();
        let managed = Managed::decode(&shuffled).unwrap();
        assert_eq!(managed.encode(Stored::None), Some(sorted.clone()));
        assert_eq!(managed.encode(Stored::Borrowed(&shuffled)), Some(sorted.clone()));
        assert_eq!(managed.encode(Stored::Owned(shuffled)), Some(sorted));
    }

    #[test]
    fn invalid_entries_are_errors() {
        let cases = [
            (json!({}), "operation must be `Apply` or `Update`"),
            (json!({"operation": "Apply"}), "apiVersion must not be empty"),
            (
                json!({"operation": "Apply", "apiVersion": "v1"}),
                "missing fieldsType in managed fields entry 0",
            ),
            (
                json!({"operation": "Apply", "apiVersion": "v1", "fieldsType": "X"}),
                "invalid fieldsType \"X\" in managed fields entry 0",
            ),
        ];
        for (entry, want) in cases {
            assert_eq!(Managed::decode(&[entry]).unwrap_err(), want);
        }
    }

    #[test]
    fn times_count_in_seconds() {
        let cases = [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:00:00Z", Some(951_825_600)),
            ("2026-11-15T23:36:27Z", Some(1_794_785_787)),
            ("2026-11-15T23:36:27.5+01:30", Some(1_794_780_387)),
            ("1969-12-31T23:59:59Z", Some(-1)),
            ("nonsense", None),
            ("2026-13-15T23:36:27Z", None),
        ];
        for (time, want) in cases {
            assert_eq!(unix_seconds(time), want, "{time}");
        }
    }
}
