//! Subresources and kinds that are answered rather than stored.

use super::Call;
use super::render::Answer;
use crate::admission::{Gvk, Operation};
use crate::object;
use crate::route::api_version;
use crate::status::ApiError;
use orlop_kinds::catalog::catalog;
use orlop_kinds::{codec, defaults};
use orlop_schema::field::{FieldError, Path};
use serde_json::{Value, json};

impl Call {
    /// A request for something that is not simply an object.
    pub(super) async fn special(&mut self) -> Result<Answer, ApiError> {
        match (self.kind.plural.as_str(), self.route.subresource.as_str(), self.route.verb) {
            ("pods", "binding", "create") | ("bindings", "", "create") => self.bind().await,
            ("pods", "eviction", "create") => self.evict().await,
            ("serviceaccounts", "token", "create") => self.request_token().await,
            ("pods", "log", "get") => self.pod_log().await,
            ("pods", "exec" | "attach" | "portforward", _) => {
                self.admit_connection().await?;
                self.pod_stream().await
            }
            (_, "proxy", _) => {
                self.admit_connection().await?;
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

    /// Asks admission about a stream to what is behind the API.
    async fn admit_connection(&mut self) -> Result<(), ApiError> {
        let kind = self.kind.clone();
        let mut attributes = self.attributes(Operation::Connect, Value::Null, false);
        attributes.object = self.connection_options(&attributes.object_kind);
        self.admit(&kind, &mut attributes).await?;
        self.check_admitted(&kind, &mut attributes).await
    }

    /// The query of a connection as the object that the real server makes of it.
    fn connection_options(&self, kind: &Gvk) -> Value {
        let mut options = json!({"kind": kind.kind, "apiVersion": api_version(&kind.group, &kind.version)});
        for flag in ["stdin", "stdout", "stderr", "tty"] {
            if self.query.is_true(flag) {
                options[flag] = true.into();
            }
        }
        if let Some(container) = self.query.get("container").filter(|text| !text.is_empty()) {
            options["container"] = container.into();
        }
        let command: Vec<&str> = self.query.all("command").collect();
        if !command.is_empty() {
            options["command"] = json!(command);
        }
        let ports: Vec<i64> = self.query.all("ports").filter_map(|port| port.parse().ok()).collect();
        if !ports.is_empty() {
            options["ports"] = json!(ports);
        }
        if self.route.subresource == "proxy" {
            let after = self.route.path.split_once("/proxy").map_or("", |(_, after)| after);
            let path = if self.route.extra > 0 { Some(after) } else { self.query.get("path") };
            if let Some(path) = path {
                options["path"] = path.into();
            }
        }
        let Some(id) = catalog().type_of(&kind.group, &kind.version, &kind.kind) else { return options };
        let mut decoded = codec::decode(id, options.clone()).map_or(options, |decoded| decoded.value);
        defaults::default_object(id, &mut decoded);
        decoded
    }

    /// The log of a pod. Nothing runs here, so that it is empty; what is wrong with the request is said.
    async fn pod_log(&mut self) -> Result<Answer, ApiError> {
        let name = self.route.name.clone();
        let pod = self.object(&name).await?;
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
    async fn pod_stream(&mut self) -> Result<Answer, ApiError> {
        let name = self.route.name.clone();
        let pod = self.object(&name).await?;
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
        let names: Vec<&str> = ["initContainers", "containers", "ephemeralContainers"]
            .iter()
            .flat_map(|list| pod["spec"][list].as_array().into_iter().flatten())
            .map(|container| object::text(container, "name"))
            .collect();
        match self.query.get("container").filter(|text| !text.is_empty()) {
            Some(container) if !names.contains(&container) => {
                Err(ApiError::bad_request(format!("container {container} is not valid for pod {name}")))
            }
            None if pod["spec"]["containers"].as_array().is_some_and(|list| list.len() > 1) => {
                Err(ApiError::bad_request(format!(
                    "a container name must be specified for pod {name}, choose one of: [{}]",
                    names.join(" ")
                )))
            }
            _ => Ok(()),
        }
    }
}

fn has_node(pod: &Value) -> bool {
    object::at(pod, "spec.nodeName").and_then(Value::as_str).is_some_and(|name| !name.is_empty())
}
