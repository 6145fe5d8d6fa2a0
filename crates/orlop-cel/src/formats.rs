//! The named formats of the `format` library.

use orlop_schema::names::{self, NameRule};
use orlop_schema::structural::formats::Format;

use crate::url::Url;

/// A format that text can be validated against.
#[derive(Debug)]
pub struct NamedFormat {
    pub(crate) name: &'static str,
    pub(crate) check: fn(&str) -> Vec<String>,
    /// Length of its pattern, from which costs are computed.
    pub(crate) pattern_len: u64,
}

const FORMATS: [NamedFormat; 13] = [
    NamedFormat { name: "dns1123Label", check: names::dns1123_label, pattern_len: 30 },
    NamedFormat { name: "dns1123Subdomain", check: names::dns1123_subdomain, pattern_len: 60 },
    NamedFormat { name: "dns1035Label", check: names::dns1035_label, pattern_len: 30 },
    NamedFormat { name: "qualifiedName", check: names::qualified_name, pattern_len: 60 },
    NamedFormat { name: "dns1123LabelPrefix", check: |s| NameRule::Label.prefix(s), pattern_len: 30 },
    NamedFormat { name: "dns1123SubdomainPrefix", check: |s| NameRule::Subdomain.prefix(s), pattern_len: 60 },
    NamedFormat { name: "dns1035LabelPrefix", check: |s| NameRule::Label1035.prefix(s), pattern_len: 30 },
    NamedFormat { name: "labelValue", check: names::label_value, pattern_len: 40 },
    NamedFormat { name: "uri", check: |s| Url::parse(s).err().into_iter().collect(), pattern_len: 1080 },
    NamedFormat {
        name: "uuid",
        check: |s| text("uuid", s, "does not match the UUID format"),
        pattern_len: 82,
    },
    NamedFormat { name: "byte", check: |s| text("byte", s, "invalid base64"), pattern_len: 88 },
    NamedFormat { name: "date", check: |s| text("date", s, "invalid date"), pattern_len: 74 },
    NamedFormat { name: "datetime", check: |s| text("datetime", s, "invalid datetime"), pattern_len: 74 },
];

static TABLE: [NamedFormat; 13] = FORMATS;

fn text(format: &str, value: &str, complaint: &str) -> Vec<String> {
    match Format::known(&["string"], format) {
        Some(Format::Text(format)) if !format.matches(value) => vec![complaint.to_owned()],
        _ => Vec::new(),
    }
}

/// The format of this name.
pub(crate) fn named(name: &str) -> Option<&'static NamedFormat> {
    TABLE.iter().find(|format| format.name == name)
}
