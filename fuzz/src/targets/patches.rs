//! Patches: the four kinds, alone and through the server.

use super::{Form, Target, field_words, lines, words};
use crate::server::{Ask, Server, populated};
use orlop_merge::{json_merge, json_patch};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// Patches that need no types: `{"object": …, "patch": …}`.
pub(super) enum Direct {
    JsonPatch,
    MergePatch,
}

impl Target for Direct {
    fn form(&self) -> Form {
        Form::Tree
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        lines(match self {
            Self::JsonPatch => include_str!("../../seeds/json-patch.jsonl"),
            Self::MergePatch => include_str!("../../seeds/merge-patch.jsonl"),
        })
    }

    fn words(&self) -> Vec<String> {
        let all = "add remove replace move copy test op path from value / /- /a /a/0 /a/-1 /a/01 ~0 ~1 ~2 a b - 0 00 1 99";
        words(all)
    }

    fn run(&mut self, input: &[u8]) -> Result<String, String> {
        let mut tree: Value = serde_json::from_slice(input).unwrap_or_default();
        let Some(fields) = tree.as_object_mut() else { return Ok("no object".to_owned()) };
        let mut part = |name: &str| fields.remove(name).unwrap_or_default();
        let (object, patch) = (part("object"), part("patch"));
        Ok(match self {
            Self::JsonPatch => {
                let checked = json_patch::check_fields(&patch).err().map(|error| error.to_string());
                match json_patch::apply(object, &patch) {
                    Ok(_) => format!("ok {}", checked.unwrap_or_default()),
                    Err(error) => error.to_string(),
                }
            }
            Self::MergePatch => match json_merge::apply(object.clone(), &patch) {
                Ok(merged) => {
                    // What changed is itself a patch that leads there, where no null stands for itself.
                    let patch = json_merge::diff(&object, &merged);
                    let again =
                        json_merge::apply(object.clone(), &patch).map_err(|error| error.to_string())?;
                    if object.is_object() && merged.is_object() && !has_null(&merged) && again != merged {
                        return Err(format!("the difference {patch} leads to {again}, not to {merged}"));
                    }
                    format!("ok {}", merged.is_object())
                }
                Err(error) => error.to_string(),
            },
        })
    }
}

fn has_null(tree: &Value) -> bool {
    match tree {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}

/// Patches that need types, sent: `{"path": …, "patch": …, "manager": …, "force": …}`.
pub(super) struct Sent {
    server: Server,
    content_type: &'static str,
}

impl Sent {
    pub(super) fn new(content_type: &'static str) -> Self {
        Self { server: Server::new(populated()), content_type }
    }
}

impl Target for Sent {
    fn form(&self) -> Form {
        Form::Tree
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        lines(if self.content_type.contains("apply") {
            include_str!("../../seeds/apply.jsonl")
        } else {
            include_str!("../../seeds/strategic-patch.jsonl")
        })
    }

    fn words(&self) -> Vec<String> {
        let mut all = words(
            "$patch delete replace merge $retainKeys $setElementOrder/containers $setElementOrder/ports $setElementOrder/finalizers $deleteFromPrimitiveList/finalizers",
        );
        all.extend(field_words());
        all
    }

    fn run(&mut self, input: &[u8]) -> Result<String, String> {
        let tree: Value = serde_json::from_slice(input).unwrap_or_default();
        let text = |name: &str| tree[name].as_str().unwrap_or_default();
        let manager = utf8_percent_encode(text("manager"), NON_ALPHANUMERIC);
        let force = if tree["force"] == true { "&force=true" } else { "" };
        let path = format!("{}?fieldManager={manager}{force}", text("path"));
        self.server.reset()?;
        let ask = Ask::new("PATCH", &path, self.content_type, tree["patch"].to_string());
        let first = self.server.ask(&ask)?;
        // The second time there is nothing left to do, but it must not fail if the first was granted.
        let second = self.server.ask(&ask)?;
        Ok(format!("{} {}", second.class(), first.class()))
    }
}
