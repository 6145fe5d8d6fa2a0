//! Reading one object.

use super::Call;
use super::render::{self, Answer};
use super::shape::Subject;
use crate::negotiate::Shape;
use crate::object::Stored;
use crate::status::ApiError;
use serde_json::Value;

impl Call {
    /// GET of an object or of a subresource that shows the whole object.
    pub(super) async fn get(&mut self) -> Result<Answer, ApiError> {
        if let Some(asked) = self.query.get("resourceVersion").filter(|text| !text.is_empty()) {
            let asked: u64 = parse_version(asked).map_err(ApiError::internal_plain)?;
            let current = self.server.store.revision().0;
            if asked > current {
                return Err(ApiError::too_large_resource_version(asked, current));
            }
        }
        let stored = self.stored(&self.route.name)?;
        let stored = self.kind.translate_one(&self.server, stored).await?;
        let as_stored = self.kind.storage == self.kind.api_version() && render::is_plain(&self.kind, &stored);
        match self.accepted.shape {
            Shape::Whole if as_stored => return Ok(Answer::Bytes(200, stored.body.clone())),
            Shape::MetadataList => return Err(self.not_a_list()),
            _ => {}
        }
        let mut out = Vec::with_capacity(stored.body.len() + 64);
        self.viewer()?.json(&mut out, Subject::Stored(&stored), true);
        Ok(Answer::Bytes(200, out.into()))
    }

    /// The stored object called `name` in the request's namespace.
    pub(super) fn stored(&self, name: &str) -> Result<Stored, ApiError> {
        let key = self.kind.key(self.namespace(), name);
        self.server.store.get(&self.kind.table, &key).ok_or_else(|| self.not_found(name))
    }

    /// The object called `name` in the request's version.
    pub(super) async fn object(&self, name: &str) -> Result<Value, ApiError> {
        let stored = self.kind.translate_one(&self.server, self.stored(name)?).await?;
        Ok(self.kind.read(&stored))
    }
}

/// A resourceVersion as a number, or Go's complaint.
pub(super) fn parse_version(text: &str) -> Result<u64, String> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number {
        return Err(format!("strconv.ParseUint: parsing \"{text}\": invalid syntax"));
    }
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing \"{text}\": value out of range"))
}
