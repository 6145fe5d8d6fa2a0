//! Acting as somebody else, for those who may.

use super::{Attributes, Auth, Decision, User};
use crate::route::Route;
use crate::server::Inner;
use crate::status::ApiError;
use http::HeaderMap;
use std::collections::BTreeMap;
use std::sync::Arc;

const EXTRA: &str = "impersonate-extra-";

impl Auth {
    /// The user a request is to be done as.
    pub(crate) fn impersonate(
        &self,
        server: &Inner,
        user: Arc<User>,
        headers: &HeaderMap,
        route: &Route,
    ) -> Result<Arc<User>, ApiError> {
        let text =
            |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
        let name = text("impersonate-user");
        let uid = text("impersonate-uid");
        let groups: Vec<String> = headers
            .get_all("impersonate-group")
            .iter()
            .filter_map(|v| Some(v.to_str().ok()?.to_owned()))
            .collect();
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (header, value) in headers {
            if let (Some(key), Ok(value)) = (header.as_str().strip_prefix(EXTRA), value.to_str()) {
                let key = percent_encoding::percent_decode_str(key).decode_utf8_lossy().into_owned();
                extra.entry(key).or_default().push(value.to_owned());
            }
        }
        if name.is_empty() && uid.is_empty() && groups.is_empty() && extra.is_empty() {
            return Ok(user);
        }
        if name.is_empty() {
            return Err(ApiError::bad_request(format!(
                "requested &user.DefaultInfo{{Name:\"\", UID:\"{uid}\", Groups:{}, Extra:{}}} without impersonating a user name",
                go_strings(&groups),
                go_extra(&extra)
            )));
        }
        self.may_impersonate(server, &user, &name, &uid, &groups, &extra, route)?;
        let mut target = User { name, uid, groups, extra };
        complete_groups(&mut target);
        Ok(Arc::new(target))
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of an identity are checked one by one")]
    fn may_impersonate(
        &self,
        server: &Inner,
        user: &User,
        name: &str,
        uid: &str,
        groups: &[String],
        extra: &BTreeMap<String, Vec<String>>,
        route: &Route,
    ) -> Result<(), ApiError> {
        let service_account =
            name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
        let allowed =
            |verb: &'static str, group: &str, resource: &str, sub: &str, namespace: &str, name: &str| {
                let attributes = Attributes::resource(verb, group, resource, sub, namespace, name);
                matches!(self.decide(server, user, &attributes), Decision::Allowed(_))
            };
        let may_be_user = match service_account {
            Some((namespace, name)) => allowed("impersonate", "", "serviceaccounts", "", namespace, name),
            None => allowed("impersonate", "", "users", "", "", name),
        };
        let all = may_be_user
            && groups.iter().all(|group| allowed("impersonate", "", "groups", "", "", group))
            && (uid.is_empty() || allowed("impersonate", "authentication.k8s.io", "uids", "", "", uid))
            && extra.iter().all(|(key, values)| {
                let may = |value: &String| {
                    allowed("impersonate", "authentication.k8s.io", "userextras", key, "", value)
                };
                values.iter().all(may)
            });
        if all {
            return Ok(());
        }
        let what = if service_account.is_some() { "serviceaccount" } else { "user-info" };
        let on = format!("impersonate-on:{what}:{}", route.verb);
        let mut attributes = Attributes::of(route);
        attributes.verb = &on;
        match self.decide(server, user, &attributes) {
            Decision::Denied(why) => Err(attributes.refusal(user, &why)),
            Decision::Allowed(_) => {
                let verb = format!("impersonate:{what}");
                let (resource, namespace, name) = match service_account {
                    Some((namespace, name)) => ("serviceaccounts", namespace, name),
                    None => ("users", "", name),
                };
                let attributes =
                    Attributes::resource(&verb, "authentication.k8s.io", resource, "", namespace, name);
                match self.decide(server, user, &attributes) {
                    Decision::Allowed(_) if groups.is_empty() && uid.is_empty() && extra.is_empty() => Ok(()),
                    _ => Err(attributes.refusal(user, "")),
                }
            }
        }
    }
}

/// Everyone is either authenticated or not; service accounts are in their groups.
fn complete_groups(user: &mut User) {
    if user.name == "system:anonymous" {
        if !user.is_in("system:unauthenticated") {
            user.groups.push("system:unauthenticated".to_owned());
        }
        return;
    }
    let service_account =
        user.name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    if let (Some((namespace, _)), true) = (service_account, user.groups.is_empty()) {
        let own = format!("system:serviceaccounts:{namespace}");
        user.groups.extend(["system:serviceaccounts".to_owned(), own]);
    }
    if !user.is_in("system:authenticated") {
        user.groups.push("system:authenticated".to_owned());
    }
}

fn go_strings(list: &[String]) -> String {
    if list.is_empty() {
        return "[]string(nil)".to_owned();
    }
    let quoted: Vec<String> = list.iter().map(|text| orlop_schema::field::go_quote(text)).collect();
    format!("[]string{{{}}}", quoted.join(", "))
}

fn go_extra(extra: &BTreeMap<String, Vec<String>>) -> String {
    if extra.is_empty() {
        return "map[string][]string(nil)".to_owned();
    }
    let pairs: Vec<String> = extra
        .iter()
        .map(|(key, values)| format!("{}:{}", orlop_schema::field::go_quote(key), go_strings(values)))
        .collect();
    format!("map[string][]string{{{}}}", pairs.join(", "))
}
