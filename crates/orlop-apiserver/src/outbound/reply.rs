//! What a webhook answered, read as the Go client reads it.

use crate::object;
use crate::yaml;
use bytes::Bytes;
use http::{HeaderMap, Response, header};
use orlop_kinds::catalog::catalog;
use orlop_kinds::{codec, json};
use serde_json::Value;

/// How much of an error's text is shown.
const ERROR_BYTES_MAX: usize = 2048;

/// The kind of review that is expected back.
pub(crate) struct Expected<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) kind: &'a str,
    /// Versions of the same kind that are known, but were not asked for.
    pub(crate) others: &'a [&'a str],
}

/// An answer as it came.
pub(crate) struct Reply {
    status: u16,
    content_type: Option<String>,
    body: Bytes,
}

impl Reply {
    pub(super) fn new(status: u16, headers: &HeaderMap, body: Bytes) -> Self {
        let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        Self { status, content_type: content_type.map(str::to_owned), body }
    }

    pub(super) fn from_response(response: Response<Bytes>) -> Self {
        let (parts, body) = response.into_parts();
        Self::new(parts.status.as_u16(), &parts.headers, body)
    }

    /// The review in the answer, or Go's complaint.
    pub(crate) fn review(&self, expected: &Expected<'_>) -> Result<Value, String> {
        if !(200..=206).contains(&self.status) {
            return Err(self.failure());
        }
        if self.body.is_empty() {
            let content_type = self.content_type.as_deref().unwrap_or("application/json");
            return Err(format!(
                "0-length response with status code: {} and content type: {content_type}",
                self.status
            ));
        }
        let value = self.parse()?;
        check_type(&value, expected)?;
        let known = catalog().type_of(expected.group, expected.version, expected.kind).or_else(|| {
            // The fields of an older version are the same.
            catalog().type_of(expected.group, "v1", expected.kind)
        });
        let Some(id) = known else { return Ok(value) };
        codec::decode(id, value).map(|decoded| decoded.value).map_err(|why| why.to_string())
    }

    /// The body as an object: JSON if it looks like it, else YAML.
    fn parse(&self) -> Result<Value, String> {
        let looks_like_json = self.body.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{');
        let value = if looks_like_json {
            let parsed = json::parse(&self.body);
            parsed.map_err(|why| format!("couldn't get version/kind; json parse error: {why}"))?.value
        } else {
            yaml::parse(&self.body)?.0
        };
        let what = match value {
            Value::Object(_) => return Ok(value),
            Value::Null => return Ok(Value::Object(serde_json::Map::new())),
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Number(_) => "number",
            Value::Bool(_) => "bool",
        };
        Err(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {what} into Go value of type struct {{ \
             APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
        ))
    }

    /// What the Go client says of an answer that is an error.
    fn failure(&self) -> String {
        if let Ok(status) = self.parse()
            && object::text(&status, "kind") == "Status"
            && object::text(&status, "apiVersion") == "v1"
            && object::text(&status, "status") == "Failure"
        {
            return object::text(&status, "message").to_owned();
        }
        let is_text = self.content_type.as_deref().is_none_or(|media| media.starts_with("text/"));
        let shown = &self.body[..self.body.len().min(ERROR_BYTES_MAX)];
        let text =
            if is_text { String::from_utf8_lossy(shown).trim().to_owned() } else { "unknown".to_owned() };
        match self.status {
            400 => "the server rejected our request for an unknown reason".to_owned(),
            401 => "the server has asked for the client to provide credentials".to_owned(),
            403 | 415 => text,
            404 => "the server could not find the requested resource".to_owned(),
            405 => "the server does not allow this method on the requested resource".to_owned(),
            406 if matches!(text.as_str(), "" | "unknown") => {
                "the server was unable to respond with a content type that the client supports".to_owned()
            }
            406 => text,
            409 => "the server reported a conflict".to_owned(),
            422 => "the server rejected our request due to an error in our request".to_owned(),
            429 => "the server has received too many requests and has asked us to try again later".to_owned(),
            503 => "the server is currently unable to handle the request".to_owned(),
            504 => "the server was unable to return a response in the time allotted, but may still be processing the \
                    request"
                .to_owned(),
            500.. => format!(
                "an error on the server ({}) has prevented the request from succeeding",
                orlop_schema::field::go_quote(&text)
            ),
            code => format!("the server responded with the status code {code} but did not return more information"),
        }
    }
}

/// An answer may leave its type out, but may not be of another.
fn check_type(value: &Value, expected: &Expected<'_>) -> Result<(), String> {
    let wanted = crate::route::api_version(expected.group, expected.version);
    let (version, kind) = (object::text(value, "apiVersion"), object::text(value, "kind"));
    let version = if version.is_empty() { wanted.as_str() } else { version };
    let kind = if kind.is_empty() { expected.kind } else { kind };
    if version == wanted && kind == expected.kind {
        return Ok(());
    }
    let (group, short) = version.rsplit_once('/').unwrap_or(("", version));
    let is_sibling = group == expected.group && kind == expected.kind && expected.others.contains(&short);
    if is_sibling || (version == "v1" && kind == "Status") {
        return Err(format!(
            "converting ({short}.{kind}) to ({}.{}): unknown conversion",
            expected.version, expected.kind
        ));
    }
    Err(format!(
        "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/util/webhook/client.go:71\""
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REVIEW: Expected<'_> =
        Expected { group: "admission.k8s.io", version: "v1", kind: "AdmissionReview", others: &["v1beta1"] };

    fn complaint(status: u16, content_type: &str, body: &str) -> String {
        let content_type = Some(content_type.to_owned()).filter(|text| !text.is_empty());
        let reply = Reply { status, content_type, body: Bytes::copy_from_slice(body.as_bytes()) };
        reply.review(&REVIEW).expect_err(body)
    }

    #[test]
    fn bad_answers_are_told_in_the_words_of_the_go_client() {
        let json = "application/json";
        for (status, content_type, body, expected) in [
            (200, "", "", "0-length response with status code: 200 and content type: application/json"),
            (200, json, "{", "couldn't get version/kind; json parse error: unexpected end of JSON input"),
            (
                200,
                json,
                r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}"#,
                "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
            ),
            (
                200,
                json,
                r#"{"apiVersion":"v1","kind":"Pod"}"#,
                r#"no kind "Pod" is registered for version "v1" in scheme "pkg/util/webhook/client.go:71""#,
            ),
            (
                200,
                json,
                r#"{"response":{"uid":"u","allowed":"true"}}"#,
                "json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool",
            ),
            (200, json, r#"{"response":{"patch":"???"}}"#, "illegal base64 data at input byte 0"),
            (403, "text/plain", "boom", "boom"),
            (403, json, "boom", "unknown"),
            (
                410,
                "",
                "",
                "the server responded with the status code 410 but did not return more information",
            ),
            (
                500,
                "text/plain",
                "boom\n",
                r#"an error on the server ("boom") has prevented the request from succeeding"#,
            ),
            (500, json, r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"m"}"#, "m"),
        ] {
            assert_eq!(complaint(status, content_type, body), expected);
        }
    }

    #[test]
    fn answers_may_be_yaml() {
        let body = Bytes::from_static(b"kind: AdmissionReview\nresponse: {uid: u, allowed: true}");
        let reply = Reply { status: 200, content_type: None, body };
        assert_eq!(reply.review(&REVIEW).expect("a good answer")["response"]["allowed"], true);
    }
}
