//! Processes of the benchmark: `orlop cluster up`, and how much memory a process has.

use super::http2::Connection;
use super::timer::Timer;
use crate::failure::{Context as _, Failure};
use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::runtime::Runtime;

/// The administrator's token.
const TOKEN: &str = "bench";

/// A server in a process of its own, which ends with this value.
pub(crate) struct Cluster {
    child: Child,
    directory: PathBuf,
    pub(crate) client: Client,
    config: Config,
    /// Milliseconds from the start of the process to the first answer.
    pub(crate) ready_ms: f64,
}

impl Cluster {
    /// Starts `orlop cluster up` and waits for its first answer.
    pub(crate) async fn start() -> Result<Self, Failure> {
        Self::start_in(None).await
    }

    /// Starts a cluster that is kept in a directory.
    pub(crate) async fn start_in(kept: Option<&Path>) -> Result<Self, Failure> {
        let directory = directory("cluster");
        let kubeconfig = directory.join("kubeconfig");
        let program = orlop()?;
        let timer = Timer::start();
        let mut command = Command::new(&program);
        if let Some(kept) = kept {
            command.args(["cluster", "up", "--data-dir"]).arg(kept);
        } else {
            command.args(["cluster", "up"]);
        }
        let mut child = command
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .env("ORLOP_HOME", &directory)
            .env("ORLOP_TOKEN", TOKEN)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context(format_args!("cannot start `{}`", program.display()))?;
        let output = child.stdout.take().ok_or_else(|| Failure::new("the cluster has no stdout"))?;
        let line = BufReader::new(output).lines().next_line().await.context("the cluster did not start")?;
        line.ok_or_else(|| Failure::new("the cluster did not start"))?;
        let config = config(&kubeconfig).await?;
        let client = Client::try_from(config.clone()).context("cannot make a client")?;
        let request = Request::get("/healthz").body(Vec::new()).context("cannot make a request")?;
        client.request_text(request).await.context("the cluster does not answer")?;
        Ok(Self { ready_ms: timer.ms(), child, directory, client, config })
    }

    /// Kills the process without a word.
    pub(crate) async fn kill(mut self) -> Result<(), Failure> {
        self.child.kill().await.context("cannot kill the cluster")
    }

    /// A new connection that many requests can share.
    pub(crate) async fn connect(&self) -> Result<Connection, Failure> {
        Connection::open(&self.config, TOKEN).await
    }

    /// A new connection that another runtime drives.
    pub(crate) async fn connect_on(&self, runtime: &Runtime) -> Result<Connection, Failure> {
        let config = self.config.clone();
        let opening = runtime.spawn(async move { Connection::open(&config, TOKEN).await });
        opening.await.context("the connection was cut short")?
    }

    /// Resident memory in bytes.
    pub(crate) fn rss(&self) -> u64 {
        self.child.id().map_or(0, |pid| rss(&pid.to_string()))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

async fn config(kubeconfig: &Path) -> Result<Config, Failure> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).context("cannot read the kubeconfig")?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .context("the kubeconfig cannot be used")
}

/// Resident memory of a process, or of this one (`self`), in bytes.
pub(crate) fn rss(pid: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}

/// A new directory for one process.
pub(crate) fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("orlop-bench-{}-{name}", std::process::id()));
    // If it cannot be made, whoever writes into it says so.
    let _ = std::fs::create_dir_all(&path);
    path
}

/// The `orlop` binary beside this one.
fn orlop() -> Result<PathBuf, Failure> {
    let here = std::env::current_exe().context("cannot find this program")?;
    let path = here.with_file_name("orlop");
    if path.is_file() {
        return Ok(path);
    }
    Err(Failure::new(format!("`{}` is missing; build it with `cargo build --release`", path.display())))
}
