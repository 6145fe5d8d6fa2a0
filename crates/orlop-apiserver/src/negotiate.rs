//! Media types: what a body is, and what an answer should be.

use crate::status::ApiError;

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
}

/// What an answer shows of its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// All of them.
    Whole,
    /// Their metadata (`PartialObjectMetadata`).
    Metadata,
    /// A list of metadata, asked for by name.
    MetadataList,
    /// Rows (`Table`).
    Table,
}

/// What a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// How it is written.
    pub format: Format,
    /// What it shows.
    pub shape: Shape,
    /// Whether it is indented.
    pub pretty: bool,
}

impl Accepted {
    /// Plain JSON.
    pub(crate) const JSON: Self = Self { format: Format::Json, shape: Shape::Whole, pretty: false };
}

/// Media types of bodies and answers of built-in kinds.
pub(crate) const BUILT_IN: [&str; 3] =
    ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
/// Media types of bodies and answers of custom kinds.
pub(crate) const CUSTOM: [&str; 2] = ["application/json", "application/yaml"];

/// Which shapes an endpoint can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shapes {
    /// Whole objects only.
    WholeOnly,
    /// Tables and metadata too.
    All,
}

/// Chooses an answer from an `Accept` header: the first clause that can be served, by descending quality.
pub(crate) fn accept(header: Option<&str>, types: &[&str], shapes: Shapes) -> Result<Accepted, ApiError> {
    let header = header.map(str::trim).filter(|text| !text.is_empty()).unwrap_or("*/*");
    let mut clauses: Vec<(f32, Clause<'_>)> = header.split(',').filter_map(Clause::parse).collect();
    clauses.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (_, clause) in &clauses {
        if let Some(accepted) = clause.serve(shapes) {
            return Ok(accepted);
        }
    }
    Err(ApiError::not_acceptable(types))
}

struct Clause<'a> {
    media_type: &'a str,
    group: &'a str,
    version: &'a str,
    shape: &'a str,
    pretty: bool,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<(f32, Self)> {
        let mut parts = text.split(';').map(str::trim);
        let mut clause = Self { media_type: parts.next()?, group: "", version: "", shape: "", pretty: false };
        let mut quality = 1.0;
        for parameter in parts {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            match name {
                "q" => quality = value.parse().unwrap_or(1.0),
                "g" => clause.group = value,
                "v" => clause.version = value,
                "as" => clause.shape = value,
                "pretty" => clause.pretty = value == "1",
                _ => {}
            }
        }
        Some((quality, clause))
    }

    fn serve(&self, shapes: Shapes) -> Option<Accepted> {
        let format = match self.media_type {
            "application/json" | "application/*" | "*/*" => Format::Json,
            "application/yaml" => Format::Yaml,
            _ => return None,
        };
        let known_version = self.group == "meta.k8s.io" && matches!(self.version, "v1" | "v1beta1");
        let shape = match (self.shape, shapes) {
            ("", _) => Shape::Whole,
            ("Table", Shapes::All) if known_version => Shape::Table,
            ("PartialObjectMetadata", Shapes::All) if known_version => Shape::Metadata,
            ("PartialObjectMetadataList", Shapes::All) if known_version => Shape::MetadataList,
            _ => return None,
        };
        Some(Accepted { format, shape, pretty: self.pretty })
    }
}

/// The format of a body, by its `Content-Type`; none is JSON.
pub(crate) fn content_type(header: Option<&str>) -> &str {
    let bare = header.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if bare.is_empty() { "application/json" } else { bare }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_clause_that_can_be_served_wins() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        for (header, shapes, expected) in [
            (None, Shapes::All, Some((Format::Json, Shape::Whole))),
            (Some("*/*"), Shapes::All, Some((Format::Json, Shape::Whole))),
            (Some("application/yaml"), Shapes::All, Some((Format::Yaml, Shape::Whole))),
            (Some(table), Shapes::All, Some((Format::Json, Shape::Table))),
            (Some(table), Shapes::WholeOnly, Some((Format::Json, Shape::Whole))),
            (
                Some("application/vnd.kubernetes.protobuf, application/json"),
                Shapes::All,
                Some((Format::Json, Shape::Whole)),
            ),
            (Some("text/html"), Shapes::All, None),
            (Some("application/json;as=Table;v=v9;g=meta.k8s.io"), Shapes::All, None),
            (
                Some("application/json;q=0.1,application/yaml"),
                Shapes::All,
                Some((Format::Yaml, Shape::Whole)),
            ),
        ] {
            let found = accept(header, &BUILT_IN, shapes).ok().map(|a| (a.format, a.shape));
            assert_eq!(found, expected, "{header:?}");
        }
    }
}
