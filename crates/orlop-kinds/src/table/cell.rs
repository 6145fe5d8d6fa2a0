//! What a cell shows of an object.

use super::{age, text};
use serde_json::Value;

/// An object and the time it is looked at. Missing fields read as the zero value of whatever is asked.
pub(super) struct View<'a> {
    pub(super) object: &'a Value,
    pub(super) now_nanos: i128,
}

/// A cell of a built-in kind. Paths are dotted.
pub(super) enum Cell {
    /// The object's name.
    Name,
    /// The time since its creation.
    Age,
    /// A text.
    Text(&'static str),
    /// A text, or another one if the field is missing.
    Present(&'static str, &'static str),
    /// A text, or another one if the field is missing or empty.
    Filled(&'static str, &'static str),
    /// An integer.
    Int(&'static str),
    /// A boolean, or this one if the field is missing.
    Bool(&'static str, bool),
    /// The number of items or entries.
    Count(&'static str),
    /// Labels, `a=b,c=d`.
    Labels(&'static str),
    /// A label selector.
    Selector(&'static str),
    /// Names of containers.
    Containers(&'static str),
    /// Images of containers.
    Images(&'static str),
    /// Texts with commas between them.
    Joined(&'static str),
    /// Whatever it takes.
    Of(fn(&View<'_>) -> Value),
}

impl std::fmt::Debug for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cell")
    }
}

impl Cell {
    /// The cell's value.
    pub(super) fn value(&self, view: &View<'_>) -> Value {
        match *self {
            Self::Name => view.text("metadata.name").into(),
            Self::Age => view.age("metadata.creationTimestamp").into(),
            Self::Text(path) => view.text(path).into(),
            Self::Present(path, other) => view.at(path).as_str().unwrap_or(other).into(),
            Self::Filled(path, other) => match view.text(path) {
                "" => other.into(),
                text => text.into(),
            },
            Self::Int(path) => view.int(path).into(),
            Self::Bool(path, other) => view.at(path).as_bool().unwrap_or(other).into(),
            Self::Count(path) => view.count(path).into(),
            Self::Labels(path) => text::labels(view.at(path)).into(),
            Self::Selector(path) => text::selector_or_none(view.at(path)).into(),
            Self::Containers(path) => view.joined(path, "name", ",").into(),
            Self::Images(path) => view.joined(path, "image", ",").into(),
            Self::Joined(path) => {
                let texts: Vec<&str> = view.items(path).iter().filter_map(Value::as_str).collect();
                texts.join(",").into()
            }
            Self::Of(make) => make(view),
        }
    }
}

impl<'a> View<'a> {
    /// The value at a dotted path, or null.
    pub(super) fn at(&self, path: &str) -> &'a Value {
        at(self.object, path)
    }

    /// A text, or nothing.
    pub(super) fn text(&self, path: &str) -> &'a str {
        self.at(path).as_str().unwrap_or_default()
    }

    /// An integer, or zero.
    pub(super) fn int(&self, path: &str) -> i64 {
        self.at(path).as_i64().unwrap_or_default()
    }

    /// The items of a list.
    pub(super) fn items(&self, path: &str) -> &'a [Value] {
        items(self.at(path))
    }

    /// How many items or entries there are.
    pub(super) fn count(&self, path: &str) -> i64 {
        let value = self.at(path);
        let entries = value.as_object().map_or(0, serde_json::Map::len);
        i64::try_from(items(value).len() + entries).unwrap_or(i64::MAX)
    }

    /// The time since a printed time.
    pub(super) fn age(&self, path: &str) -> String {
        age::since(self.text(path), self.now_nanos)
    }

    /// One field of each item of a list.
    pub(super) fn joined(&self, path: &str, field: &str, between: &str) -> String {
        let texts: Vec<&str> = self.items(path).iter().map(|item| text_at(item, field)).collect();
        texts.join(between)
    }

    /// The first condition of a type.
    pub(super) fn condition(&self, ty: &str) -> Option<&'a Value> {
        self.items("status.conditions").iter().find(|condition| condition["type"] == ty)
    }

    /// Whether the first condition of a type is true.
    pub(super) fn is(&self, ty: &str) -> bool {
        self.condition(ty).is_some_and(|condition| condition["status"] == "True")
    }

    /// Whether deletion has begun.
    pub(super) fn is_deleting(&self) -> bool {
        !self.at("metadata.deletionTimestamp").is_null()
    }

    /// An annotation.
    pub(super) fn annotation(&self, key: &str) -> Option<&'a str> {
        self.at("metadata.annotations").get(key)?.as_str()
    }
}

/// The value at a dotted path, or null.
pub(super) fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    static NULL: Value = Value::Null;
    path.split('.').try_fold(value, |value, key| value.get(key)).unwrap_or(&NULL)
}

/// The text at a dotted path, or nothing.
pub(super) fn text_at<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).as_str().unwrap_or_default()
}

/// The items of a list.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
