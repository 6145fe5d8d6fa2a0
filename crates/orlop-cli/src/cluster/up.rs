//! `orlop cluster up`.

use super::state::{Lock, State, write_private};
use crate::shell::{Failure, Shell};
use clap::Args as ClapArgs;
use orlop_apiserver::{
    ADMISSION_PLUGINS, ApiServer, Certificates, OpenError, ServeError, Serving, User, random_token,
};
use orlop_clock::Clock;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tokio::signal::unix::{SignalKind, signal};

/// Where a kept cluster notes its administrator's token and its port.
const TOKEN_FILE: &str = "admin.token";
const PORT_FILE: &str = "port";
/// How a kubeconfig begins that may be replaced.
const KUBECONFIG_MARK: &str = "# written by `orlop cluster up`";

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The port to listen on; 0 takes a free one
    #[arg(long, default_value_t = 0, value_name = "N")]
    port: u16,
    /// Where the kubeconfig is written
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Return when the cluster is ready and leave it running
    #[arg(long)]
    detach: bool,
    /// Which built-in controllers run; this version has none
    #[arg(long, default_value = "none", value_name = "none", value_parser = ["none"])]
    controllers: String,
    /// How many nodes are simulated; this version has none
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = no_nodes)]
    nodes: u16,
    /// Admission plugins to switch off, by the names of kube-apiserver
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    disable_admission_plugins: Vec<String>,
    /// A directory to keep the cluster in; without one it is gone when it stops
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// A bearer token for the administrator; one is made up if it is not given
    #[arg(long, value_name = "TOKEN", env = "ORLOP_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

fn no_nodes(text: &str) -> Result<u16, String> {
    match text {
        "0" => Ok(0),
        _ => Err("this version simulates no nodes; only 0 is accepted".to_owned()),
    }
}

pub(crate) fn run(args: &Args, shell: &Shell) -> Result<(), Failure> {
    for plugin in &args.disable_admission_plugins {
        if !ADMISSION_PLUGINS.contains(&plugin.as_str()) {
            shell.say(format_args!(
                "warning: no admission plugin `{plugin}` runs here; nothing to switch off"
            ));
        }
    }
    if let Some(running) = State::running()? {
        return Err(already_running(Some(&running)));
    }
    if args
        .token
        .as_ref()
        .is_some_and(|token| token.is_empty() || !token.chars().all(|c| c.is_ascii_graphic()))
    {
        return Err(Failure::new("a token must be printable text without spaces, and not empty"));
    }
    if args.detach {
        return detach(args, shell);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new("cannot start the async runtime").because(error))?;
    runtime.block_on(serve(args, shell))
}

fn already_running(state: Option<&State>) -> Failure {
    let what = state.map_or_else(
        || "another cluster is being started".to_owned(),
        |state| format!("a cluster is running at {}", state.url),
    );
    Failure::new(what).hint("stop it with `orlop cluster down`, or set `ORLOP_HOME` to keep several")
}

/// A kubeconfig that somebody else wrote is not overwritten: it may be the only copy of other clusters' keys.
fn check_kubeconfig(path: &Path) -> Result<(), Failure> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Failure::new(format!("cannot read `{}`", path.display())).because(error)),
    };
    if text.trim().is_empty() || text.starts_with(KUBECONFIG_MARK) {
        return Ok(());
    }
    Err(Failure::new(format!("`{}` exists and is not from orlop", path.display()))
        .hint("name another file with `--kubeconfig`; `KUBECONFIG=one:two` lets kubectl use both"))
}

/// Listens on the port that was asked for, or on the one that a kept cluster had, or on a free one.
async fn listen(server: &ApiServer, certificates: &Certificates, args: &Args) -> Result<Serving, ServeError> {
    let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let before = noted(args.data_dir.as_deref(), PORT_FILE).and_then(|port| port.parse::<u16>().ok());
    if args.port == 0
        && let Some(port) = before
        && let Ok(serving) = server.serve(at(port), certificates).await
    {
        return Ok(serving);
    }
    server.serve(at(args.port), certificates).await
}

/// Why a directory cannot be used, and what to do about it.
fn cannot_open(directory: &Path, error: OpenError) -> Failure {
    let hint = match &error {
        OpenError::InUse { .. } => "stop the cluster that uses it, or choose another `--data-dir`",
        OpenError::Newer { .. } => "use the version of orlop that wrote it, or choose another `--data-dir`",
        OpenError::Io { .. } => "choose a directory that you can write to, with room in it",
        _ => "nothing in it was changed; restore it from a copy, or choose another `--data-dir`",
    };
    Failure::new(format!("cannot open the cluster in `{}`", directory.display())).because(error).hint(hint)
}

/// A line that a cluster which is kept has noted for its next start.
fn noted(directory: Option<&Path>, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(directory?.join(name)).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

async fn serve(args: &Args, shell: &Shell) -> Result<(), Failure> {
    let Some(lock) = Lock::keep().await? else {
        return Err(already_running(State::running()?.as_ref()));
    };
    let path = match &args.kubeconfig {
        Some(path) => {
            check_kubeconfig(path)?;
            path.clone()
        }
        None => State::directory()?.join("kubeconfig.yaml"),
    };
    let clock = Clock::system();
    let kept = args.data_dir.as_deref();
    let token = args.token.clone().or_else(|| noted(kept, TOKEN_FILE)).unwrap_or_else(random_token);
    let mut builder = ApiServer::builder().clock(clock.clone()).token(&token, User::admin());
    for plugin in &args.disable_admission_plugins {
        builder = builder.disable_admission(plugin);
    }
    let cannot = |error| Failure::new("cannot serve the API").because(error);
    let (server, certificates) = match &args.data_dir {
        Some(directory) => {
            let server = builder.open(directory).map_err(|error| cannot_open(directory, error))?;
            (server, Certificates::keep_in(&directory.join("pki"), clock.now()).map_err(cannot)?)
        }
        None => (builder.build(), Certificates::generate(clock.now()).map_err(cannot)?),
    };
    let serving = listen(&server, &certificates, args)
        .await
        .map_err(|error| cannot(error).hint("choose another port with `--port`, or 0 for a free one"))?;
    if let Some(directory) = kept {
        if args.token.is_none() {
            write_private(&directory.join(TOKEN_FILE), &token)?;
        }
        write_private(&directory.join(PORT_FILE), &serving.address().port().to_string())?;
    }
    let url = format!("https://{}", serving.address());
    let kubeconfig = certificates.kubeconfig(&url, &token);
    write_private(&path, &format!("{KUBECONFIG_MARK}; replaced at each start\n{kubeconfig}"))?;
    let path = std::path::absolute(&path).unwrap_or(path);
    let state = State { url: url.clone(), pid: std::process::id(), kubeconfig: path.clone() };
    state.save(&lock)?;
    let handler = |kind| signal(kind).map_err(|error| Failure::new("cannot handle signals").because(error));
    let (mut terminate, mut interrupt) =
        (handler(SignalKind::terminate())?, handler(SignalKind::interrupt())?);
    shell.data(format_args!("ready {url}"));
    shell.say(format_args!("hint: export KUBECONFIG={}", path.display()));
    let asked = async {
        tokio::select! {
            biased;
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    serving.run(asked).await;
    State::forget(&lock);
    shell.say(format_args!("stopped {url}"));
    Ok(())
}

/// Starts this program again in the background and waits for its word that it serves.
fn detach(args: &Args, shell: &Shell) -> Result<(), Failure> {
    let program =
        std::env::current_exe().map_err(|error| Failure::new("cannot find this program").because(error))?;
    let log_path = State::directory()?.join("cluster.log");
    write_private(&log_path, "")?;
    let cannot_log = |error| Failure::new(format!("cannot write `{}`", log_path.display())).because(error);
    let log = std::fs::OpenOptions::new().append(true).open(&log_path).map_err(cannot_log)?;
    let mut command = Command::new(program);
    command.args(["cluster", "up", "--port", &args.port.to_string()]);
    if let Some(path) = &args.kubeconfig {
        command.arg("--kubeconfig").arg(path);
    }
    if let Some(directory) = &args.data_dir {
        command.arg("--data-dir").arg(directory);
    }
    if !args.disable_admission_plugins.is_empty() {
        command.arg(format!("--disable-admission-plugins={}", args.disable_admission_plugins.join(",")));
    }
    if let Some(token) = &args.token {
        command.env("ORLOP_TOKEN", token);
    }
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(|error| Failure::new("cannot start the cluster").because(error))?;
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        let _ = BufReader::new(output).read_line(&mut line);
    }
    if line.is_empty() {
        let log = std::fs::read_to_string(&log_path).unwrap_or_default();
        log.lines().for_each(|line| shell.say(line));
        return Err(Failure::new("the cluster did not start"));
    }
    shell.data(line.trim_end());
    if let Some(state) = State::running()? {
        shell.say(format_args!("hint: export KUBECONFIG={}", state.kubeconfig.display()));
    }
    Ok(())
}
