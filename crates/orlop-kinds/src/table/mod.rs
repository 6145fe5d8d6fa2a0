//! Objects as rows of a Table, as the server prints them for people.
//!
//! A [`Printer`] knows the columns of a kind and makes the cells of its objects. Built-in kinds have a list of
//! cells here and their columns in the catalog's data; the rest have a name and a creation time; custom
//! kinds say themselves which paths they show. Ages need to know the time, which is passed in.

mod age;
mod cell;
mod custom;
mod jsonpath;
mod kinds;
mod pod;
mod scaling;
mod text;

use crate::catalog::unpack;
use cell::{Cell, View};
use custom::CustomColumn;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// How objects of a kind become rows.
#[derive(Clone, Debug)]
pub struct Printer {
    columns: Value,
    cells: Cells,
}

#[derive(Clone, Debug)]
enum Cells {
    BuiltIn(&'static str, &'static [Cell]),
    NameAndCreation,
    Custom(Vec<CustomColumn>),
}

/// A row without its object.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// One value for each column.
    pub cells: Vec<Value>,
    /// The row's conditions, if it has any.
    pub conditions: Option<Value>,
}

impl Printer {
    /// The printer of a built-in kind.
    pub fn built_in(kind: &str) -> &'static Printer {
        static PRINTERS: OnceLock<(BTreeMap<&'static str, Printer>, Printer)> = OnceLock::new();
        let (known, other) = PRINTERS.get_or_init(load);
        known.get(kind).unwrap_or(other)
    }

    /// The printer of a custom kind, from the `additionalPrinterColumns` of its version. What follows a path that
    /// cannot be read is left out.
    pub fn custom(columns: Option<&Value>) -> Self {
        let by_default = json!([{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
            "description": swagger("creationTimestamp")}]);
        let columns = columns.filter(|columns| columns.as_array().is_some_and(|list| !list.is_empty()));
        Self::of_paths(columns.unwrap_or(&by_default))
    }

    /// The printer of a custom kind's scale; `has_desired` and `has_actual` tell which counts the kind has.
    pub fn custom_scale(has_desired: bool, has_actual: bool) -> Self {
        let count = |name: &str, path: &str, description: &str| json!({"name": name, "type": "integer", "jsonPath": path, "description": description});
        let mut columns = Vec::new();
        if has_desired {
            columns.push(count("Desired", ".spec.replicas", "Number of desired replicas"));
        }
        if has_actual {
            columns.push(count("Available", ".status.replicas", "Number of actual replicas"));
        }
        columns.push(json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
            "description": swagger("creationTimestamp")}));
        Self::of_paths(&Value::Array(columns))
    }

    fn of_paths(columns: &Value) -> Self {
        let mut definitions = vec![definition("Name", "string", "name", swagger("name"), 0)];
        let mut cells = Vec::new();
        for column in columns.as_array().into_iter().flatten() {
            let Some(cell) = CustomColumn::parse(column) else { break };
            definitions.push(cell.definition(column));
            cells.push(cell);
        }
        Self { columns: Value::Array(definitions), cells: Cells::Custom(cells) }
    }

    /// The definitions of the columns, a JSON list.
    pub fn columns(&self) -> &Value {
        &self.columns
    }

    /// Whether the columns are said with every event of a watch, not with the first alone.
    pub fn repeats_columns(&self) -> bool {
        matches!(self.cells, Cells::BuiltIn("APIService", _))
    }

    /// Whether a Table without rows has no list of them rather than an empty one.
    pub fn has_null_rows(&self) -> bool {
        matches!(self.cells, Cells::NameAndCreation)
    }

    /// Where an object stands in a Table, if not where it stands in a list.
    pub fn place(&self, object: &Value) -> Option<(i64, String)> {
        let view = View { object, now_nanos: 0 };
        matches!(self.cells, Cells::BuiltIn("FlowSchema", _))
            .then(|| (view.int("spec.matchingPrecedence"), view.text("metadata.name").to_owned()))
    }

    /// The row of an object, at a time in nanoseconds since 1970. A built-in object is expected in the version in
    /// which it is stored, a custom one in the version that the printer was made for.
    pub fn row(&self, object: &Value, now_nanos: i128) -> Row {
        let view = View { object, now_nanos };
        let (cells, conditions) = match &self.cells {
            Cells::BuiltIn("Pod", _) => (pod::cells(&view), pod::conditions(&view)),
            Cells::BuiltIn(_, cells) => (cells.iter().map(|cell| cell.value(&view)).collect(), None),
            Cells::NameAndCreation => {
                let created = match view.text("metadata.creationTimestamp") {
                    "" => "0001-01-01T00:00:00Z",
                    time => time,
                };
                (vec![view.text("metadata.name").into(), created.into()], None)
            }
            Cells::Custom(columns) => {
                let name = [view.text("metadata.name").into()];
                (name.into_iter().chain(columns.iter().map(|column| column.value(&view))).collect(), None)
            }
        };
        Row { cells, conditions }
    }
}

fn load() -> (BTreeMap<&'static str, Printer>, Printer) {
    let known = kinds::KINDS.iter().map(|(kind, cells)| {
        let columns = if *kind == "APIService" {
            json!([
                definition("Name", "string", "name", swagger("name"), 0),
                definition(
                    "Service",
                    "string",
                    "",
                    "The reference to the service that hosts this API endpoint.",
                    0
                ),
                definition("Available", "string", "", "Whether this service is available.", 0),
                definition("Age", "string", "", swagger("creationTimestamp"), 0),
            ])
        } else {
            data().get(*kind).cloned().unwrap_or_default()
        };
        (*kind, Printer { columns, cells: Cells::BuiltIn(kind, cells) })
    });
    let columns = json!([
        definition("Name", "string", "name", swagger("name"), 0),
        definition("Created At", "date", "", swagger("creationTimestamp"), 0),
    ]);
    (known.collect(), Printer { columns, cells: Cells::NameAndCreation })
}

fn definition(name: &str, ty: &str, format: &str, description: &str, priority: i64) -> Value {
    json!({"name": name, "type": ty, "format": format, "description": description, "priority": priority})
}

/// Columns of built-in kinds, by kind.
fn data() -> &'static Value {
    static DATA: OnceLock<Value> = OnceLock::new();
    DATA.get_or_init(|| {
        serde_json::from_str(unpack(include_bytes!("../../data/columns.json.gz"))).unwrap_or_default()
    })
}

/// What Kubernetes says about a field of metadata that every Table shows.
fn swagger(field: &str) -> &'static str {
    let column = if field == "name" { "Name" } else { "Age" };
    let columns = data()["ConfigMap"].as_array().map_or(&[][..], Vec::as_slice);
    columns.iter().find(|c| c["name"] == column).and_then(|c| c["description"].as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
