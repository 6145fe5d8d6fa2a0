//! Subresources and kinds that are answered rather than stored.

use super::Call;
use super::render::Answer;
use crate::object;
use crate::status::ApiError;
use orlop_schema::field::{FieldError, Path};
use serde_json::{Value, json};

impl Call {
    /// A request for something that is not simply an object.
    pub(super) async fn special(&mut self) -> Result<Answer, ApiError> {
        match (self.kind.plural.as_str(), self.route.subresource.as_str(), self.route.verb) {
            ("pods", "binding", "create") | ("bindings", "", "create") => self.bind(),
            ("pods", "eviction", "create") => self.evict().await,
            ("serviceaccounts", "token", "create") => self.request_token(),
            ("pods", "log", "get") => self.pod_log(),
            ("pods", "exec" | "attach" | "portforward", _) => self.pod_stream(),
            (_, "proxy", _) => {
                self.stored(&self.route.name)?;
                Err(ApiError::new(
                    503,
                    "ServiceUnavailable",
                    "nothing runs behind this server: there is nothing to proxy to",
                ))
            }
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    /// The log of a pod. Nothing runs here, so that it is empty; what is wrong with the request is said.
    fn pod_log(&mut self) -> Result<Answer, ApiError> {
        let name = self.route.name.clone();
        let pod = self.object(&name)?;
        let mut errors = Vec::new();
        for field in ["tailLines", "limitBytes", "sinceSeconds"] {
            let Some(text) = self.query.get(field).filter(|text| !text.is_empty()) else { continue };
            let number: i64 = text.parse().map_err(|_| {
                ApiError::bad_request(format!("strconv.ParseInt: parsing \"{text}\": invalid syntax"))
            })?;
            let (least, words) = if field == "tailLines" {
                (0, "must be greater than or equal to 0")
            } else {
                (1, "must be greater than 0")
            };
            if number < least {
                errors.push(FieldError::invalid(&Path::new(field), &json!(number), words));
            }
        }
        if !errors.is_empty() {
            return Err(ApiError::invalid("", "PodLogOptions", &name, &errors));
        }
        self.check_container(&pod)?;
        Ok(if has_node(&pod) { Answer::Text(200, String::new()) } else { Answer::Empty(204) })
    }

    /// exec, attach and port-forward need a process; there is none here.
    fn pod_stream(&mut self) -> Result<Answer, ApiError> {
        let name = self.route.name.clone();
        let pod = self.object(&name)?;
        if self.route.subresource != "portforward" {
            self.check_container(&pod)?;
        }
        if !has_node(&pod) {
            return Err(ApiError::bad_request(format!("pod {name} does not have a host assigned")));
        }
        let message = format!("pod {name} runs nothing: this server simulates the API, not containers");
        Err(ApiError::new(501, "NotImplemented", message))
    }

    fn check_container(&self, pod: &Value) -> Result<(), ApiError> {
        let name = object::meta_str(pod, "name");
        let names: Vec<&str> = ["containers", "initContainers", "ephemeralContainers"]
            .iter()
            .flat_map(|list| pod["spec"][list].as_array().into_iter().flatten())
            .map(|container| object::text(container, "name"))
            .collect();
        match self.query.get("container").filter(|text| !text.is_empty()) {
            Some(container) if !names.contains(&container) => {
                Err(ApiError::bad_request(format!("container {container} is not valid for pod {name}")))
            }
            None if names.len() > 1 => Err(ApiError::bad_request(format!(
                "a container name must be specified for pod {name}, choose one of: [{}]",
                names.join(" ")
            ))),
            _ => Ok(()),
        }
    }
}

fn has_node(pod: &Value) -> bool {
    object::at(pod, "spec.nodeName").and_then(Value::as_str).is_some_and(|name| !name.is_empty())
}
