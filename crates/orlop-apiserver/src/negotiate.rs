//! Media types: what a body is, and what an answer should be.

use crate::status::ApiError;

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
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
    /// The `apiVersion` of Tables and metadata.
    pub meta_version: &'static str,
    /// Whether it is indented.
    pub pretty: bool,
}

impl Accepted {
    /// Plain JSON.
    pub(crate) const JSON: Self =
        Self { format: Format::Json, shape: Shape::Whole, meta_version: META_VERSIONS[0], pretty: false };
}

/// Media types of bodies and answers of built-in kinds.
pub(crate) const BUILT_IN: [&str; 3] =
    ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
/// Media types of bodies of custom kinds.
pub(crate) const CUSTOM: [&str; 2] = ["application/json", "application/yaml"];
/// Media types of watches.
const STREAMS: [&str; 2] =
    ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
const META_VERSIONS: [&str; 2] = ["meta.k8s.io/v1", "meta.k8s.io/v1beta1"];

/// What an endpoint can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// Whole objects in every format, such as errors.
    Plain,
    /// Built-in objects, whole or not.
    BuiltIn,
    /// Custom objects: whole ones have no protobuf form.
    Custom,
}

/// Chooses an answer from an `Accept` header: the first clause that can be served, by descending quality.
pub(crate) fn accept(header: Option<&str>, offer: Offer) -> Result<Accepted, ApiError> {
    choose(header, offer).ok_or_else(|| ApiError::not_acceptable(&BUILT_IN))
}

/// Chooses how a watch answers; not every format can be streamed.
pub(crate) fn accept_stream(header: Option<&str>, offer: Offer) -> Result<Accepted, ApiError> {
    choose(header, offer)
        .filter(|accepted| accepted.format != Format::Yaml)
        .ok_or_else(|| ApiError::not_acceptable(&STREAMS))
}

/// How an error is written: as the client accepts it, or as indented JSON if it accepts nothing that is known.
pub(crate) fn accept_error(header: Option<&str>) -> Accepted {
    choose(header, Offer::Plain).unwrap_or(Accepted { pretty: true, ..Accepted::JSON })
}

fn choose(header: Option<&str>, offer: Offer) -> Option<Accepted> {
    let Some(header) = header.filter(|text| !text.is_empty()) else { return Some(Accepted::JSON) };
    let mut clauses: Vec<Clause<'_>> = header.split(',').filter_map(Clause::parse).collect();
    // A star yields to a name of the same quality.
    clauses.sort_by(|a, b| {
        let stars = |c: &Clause<'_>| (c.media_type == "*", c.subtype == "*");
        b.quality.total_cmp(&a.quality).then_with(|| stars(a).cmp(&stars(b)))
    });
    clauses.iter().find_map(|clause| clause.serve(offer))
}

/// One alternative of an `Accept` header.
pub(crate) struct Clause<'a> {
    quality: f32,
    media_type: &'a str,
    subtype: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    /// Reads an alternative; one without a media type is none.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(|part| part.trim_matches(' '));
        let (media_type, subtype) = match parts.next()?.split_once('/') {
            Some((media_type, subtype)) => (media_type.trim_matches(' '), subtype.trim_matches(' ')),
            // As the original reads a lone star.
            None if text.trim_matches(' ').starts_with('*') => ("*", "*"),
            None => return None,
        };
        let parameters: Vec<(&str, &str)> = parts.filter_map(|parameter| parameter.split_once('=')).collect();
        let quality = parameters.iter().find(|(name, _)| *name == "q");
        let quality = quality.map_or(1.0, |(_, text)| text.parse().unwrap_or(1.0));
        Some(Self { quality, media_type, subtype, parameters })
    }

    /// A parameter's value.
    pub(crate) fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().rfind(|(n, _)| *n == name).map(|(_, value)| *value)
    }

    /// Whether a media type such as `application/json` is meant.
    pub(crate) fn covers(&self, media_type: &str) -> bool {
        let (main, sub) = media_type.split_once('/').unwrap_or((media_type, ""));
        match (self.media_type, self.subtype) {
            ("*", "*") => true,
            (m, "*") => m == main,
            (m, s) => m == main && s == sub,
        }
    }

    fn serve(&self, offer: Offer) -> Option<Accepted> {
        let formats = [Format::Json, Format::Yaml, Format::Protobuf];
        let mut offered = formats.into_iter().zip(BUILT_IN).filter(|(_, media_type)| self.covers(media_type));
        offered.find_map(|(format, _)| self.serve_as(format, offer))
    }

    fn serve_as(&self, format: Format, offer: Offer) -> Option<Accepted> {
        match self.parameter("stream") {
            None | Some("") => {}
            Some("watch") if format != Format::Yaml => {}
            Some(_) => return None,
        }
        if self
            .parameter("sv")
            .is_some_and(|version| !version.is_empty() && (version != "v1" || offer == Offer::Plain))
        {
            return None;
        }
        let pretty = self.parameter("pretty") == Some("1");
        let target = ["as", "g", "v"].map(|name| self.parameter(name));
        if target == [None; 3] {
            let has_form = offer != Offer::Custom || format != Format::Protobuf;
            return has_form.then_some(Accepted { format, pretty, ..Accepted::JSON });
        }
        let [shape, group, version] = target.map(Option::unwrap_or_default);
        let meta_version = match (offer, group, version) {
            (Offer::Plain, ..) => return None,
            (_, "meta.k8s.io", "v1") => META_VERSIONS[0],
            (_, "meta.k8s.io", "v1beta1") => META_VERSIONS[1],
            _ => return None,
        };
        let shape = match shape {
            // Cells have no protobuf form.
            "Table" if format != Format::Protobuf => Shape::Table,
            "PartialObjectMetadata" => Shape::Metadata,
            "PartialObjectMetadataList" => Shape::MetadataList,
            _ => return None,
        };
        Some(Accepted { format, shape, meta_version, pretty })
    }
}

/// Whether a client that does not say so wants to read the answer itself.
pub(crate) fn is_for_people(user_agent: Option<&str>) -> bool {
    let agent = user_agent.unwrap_or_default();
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|prefix| agent.starts_with(prefix))
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
        use Format::{Json, Protobuf, Yaml};
        use Shape::{Metadata, Table, Whole};
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        let both = "application/vnd.kubernetes.protobuf,application/json";
        for (header, offer, expected) in [
            ("", Offer::BuiltIn, Some((Json, Whole))),
            ("*/*", Offer::BuiltIn, Some((Json, Whole))),
            ("*", Offer::BuiltIn, Some((Json, Whole))),
            ("application/yaml", Offer::BuiltIn, Some((Yaml, Whole))),
            (table, Offer::BuiltIn, Some((Json, Table))),
            (table, Offer::Custom, Some((Json, Table))),
            (table, Offer::Plain, Some((Json, Whole))),
            (both, Offer::BuiltIn, Some((Protobuf, Whole))),
            (both, Offer::Custom, Some((Json, Whole))),
            ("application/vnd.kubernetes.protobuf", Offer::Custom, None),
            (
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
                Offer::Custom,
                Some((Protobuf, Metadata)),
            ),
            ("application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1", Offer::BuiltIn, None),
            ("application/vnd.kubernetes.protobuf;stream=watch", Offer::BuiltIn, Some((Protobuf, Whole))),
            ("application/yaml;stream=watch", Offer::BuiltIn, None),
            ("application/json;stream=other", Offer::BuiltIn, None),
            ("text/html", Offer::BuiltIn, None),
            ("application/json;as=Table;v=v9;g=meta.k8s.io", Offer::BuiltIn, None),
            ("application/json;as=Table;v=v1beta1;g=meta.k8s.io", Offer::BuiltIn, Some((Json, Table))),
            ("application/json;as=Table", Offer::BuiltIn, None),
            ("application/json;g=meta.k8s.io", Offer::BuiltIn, None),
            ("application/json;q=0.1,application/yaml", Offer::BuiltIn, Some((Yaml, Whole))),
            ("*/*,application/yaml", Offer::BuiltIn, Some((Yaml, Whole))),
        ] {
            let found = accept(Some(header), offer).ok().map(|a| (a.format, a.shape));
            assert_eq!(found, expected, "{header:?}");
        }
        assert!(accept_stream(Some("application/yaml"), Offer::BuiltIn).is_err());
        assert!(accept_error(Some("text/html")).pretty);
    }
}
