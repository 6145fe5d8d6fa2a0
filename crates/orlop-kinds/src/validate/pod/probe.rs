//! Probes and lifecycle hooks of containers.

use super::super::view::{At, Report};
use orlop_schema::field::go_quote;
use orlop_schema::names;

/// A probe; `readiness` has its own rules.
pub(crate) fn probe(r: &mut Report, at: &At<'_>, grace: Option<i64>, readiness: bool) {
    if !at.is_set() {
        return;
    }
    handler(r, at, grace, &["exec", "httpGet", "tcpSocket", "grpc"]);
    r.all_non_negative(
        at,
        &["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"],
    );
    let own_grace = at.get("terminationGracePeriodSeconds");
    r.when(own_grace.is_set() && own_grace.int() <= 0, || own_grace.invalid("must be greater than 0"));
    if readiness {
        r.when(own_grace.is_set(), || own_grace.invalid("must not be set for readinessProbes"));
    } else {
        let threshold = at.get("successThreshold");
        r.when(threshold.int() != 1, || threshold.invalid_int("must be 1"));
    }
}

/// Hooks around the life of a container.
pub(crate) fn lifecycle(r: &mut Report, at: &At<'_>, grace: Option<i64>, os: Option<&str>) {
    for hook in ["postStart", "preStop"] {
        let hook = at.get(hook);
        if hook.is_set() {
            handler(r, &hook, grace, &["exec", "httpGet", "tcpSocket", "sleep"]);
        }
    }
    let signal = at.get("stopSignal");
    if signal.is_set() {
        match os {
            None => r.add(signal.forbidden("may not be set for containers with empty `spec.os.name`")),
            Some("windows") => {
                r.one_of(&signal, &["SIGKILL", "SIGTERM"]);
            }
            Some("linux") => {
                r.one_of(&signal, &linux_signals());
            }
            Some(_) => {}
        }
    }
}

/// The signals Linux knows, sorted as Go sorts strings.
fn linux_signals() -> Vec<&'static str> {
    let mut signals = vec![
        "SIGABRT",
        "SIGALRM",
        "SIGBUS",
        "SIGCHLD",
        "SIGCLD",
        "SIGCONT",
        "SIGFPE",
        "SIGHUP",
        "SIGILL",
        "SIGINT",
        "SIGIO",
        "SIGIOT",
        "SIGKILL",
        "SIGPIPE",
        "SIGPOLL",
        "SIGPROF",
        "SIGPWR",
        "SIGQUIT",
        "SIGSEGV",
        "SIGSTKFLT",
        "SIGSTOP",
        "SIGSYS",
        "SIGTERM",
        "SIGTRAP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGUSR1",
        "SIGUSR2",
        "SIGVTALRM",
        "SIGWINCH",
        "SIGXCPU",
        "SIGXFSZ",
        "SIGRTMIN",
        "SIGRTMIN+1",
        "SIGRTMIN+2",
        "SIGRTMIN+3",
        "SIGRTMIN+4",
        "SIGRTMIN+5",
        "SIGRTMIN+6",
        "SIGRTMIN+7",
        "SIGRTMIN+8",
        "SIGRTMIN+9",
        "SIGRTMIN+10",
        "SIGRTMIN+11",
        "SIGRTMIN+12",
        "SIGRTMIN+13",
        "SIGRTMIN+14",
        "SIGRTMIN+15",
        "SIGRTMAX-14",
        "SIGRTMAX-13",
        "SIGRTMAX-12",
        "SIGRTMAX-11",
        "SIGRTMAX-10",
        "SIGRTMAX-9",
        "SIGRTMAX-8",
        "SIGRTMAX-7",
        "SIGRTMAX-6",
        "SIGRTMAX-5",
        "SIGRTMAX-4",
        "SIGRTMAX-3",
        "SIGRTMAX-2",
        "SIGRTMAX-1",
        "SIGRTMAX",
    ];
    signals.sort_unstable();
    signals
}

fn handler(r: &mut Report, at: &At<'_>, grace: Option<i64>, kinds: &[&str]) {
    let mut handlers = 0;
    for kind in kinds {
        let action = at.get(kind);
        if !action.is_set() {
            continue;
        }
        if handlers > 0 {
            r.add(action.forbidden("may not specify more than 1 handler type"));
            continue;
        }
        handlers += 1;
        match *kind {
            "exec" => {
                r.required(&action.get("command"));
            }
            "httpGet" => http_get(r, &action),
            "sleep" => sleep(r, &action, grace),
            _ => r.port_or_name(&action.get("port")),
        }
    }
    r.when(handlers == 0, || at.required("must specify a handler type"));
}

fn http_get(r: &mut Report, at: &At<'_>) {
    r.required(&at.get("path"));
    r.port_or_name(&at.get("port"));
    r.one_of(&at.get("scheme"), &["HTTP", "HTTPS"]);
    let headers = at.get("httpHeaders");
    for header in headers.items() {
        let name = header.get("name");
        for wrong in names::http_header_name(name.str()) {
            r.add(headers.invalid_with(go_quote(name.str()), wrong));
        }
    }
}

fn sleep(r: &mut Report, at: &At<'_>, grace: Option<i64>) {
    let seconds = at.get("seconds").int();
    if let Some(grace) = grace
        && !(0..=grace).contains(&seconds)
    {
        r.add(at.invalid_with(
            seconds.to_string(),
            format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})"),
        ));
    }
}
