//! A real kube-apiserver with etcd, for comparison.

use super::client::Target;
use super::process::directory;
use super::throughput::{self, Throughput};
use crate::failure::{Context as _, Failure};
use kube::{Client, Config};
use orlop_apiserver::Certificates;
use orlop_clock::Clock;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};

const TOKEN: &str = "bench";
/// How long the server may take to start.
const PATIENCE: Duration = Duration::from_mins(1);

/// etcd and kube-apiserver, which end with this value.
pub(crate) struct Real {
    _etcd: Child,
    _server: Child,
    directory: PathBuf,
    pub(crate) client: Client,
}

/// Whether etcd syncs what it writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fsync {
    On,
    /// As envtest has it.
    Off,
}

/// Measures the server whose binaries are in `binaries`.
pub(crate) async fn throughput(binaries: &Path) -> Result<Throughput, Failure> {
    let real = Real::start(binaries, Fsync::Off).await?;
    throughput::of(&Target::Client(real.client.clone())).await
}

impl Real {
    pub(crate) async fn start(binaries: &Path, fsync: Fsync) -> Result<Self, Failure> {
        let directory = directory("real");
        let [client_port, peer_port, port] = free_ports()?;
        let (etcd_url, peer_url) =
            (format!("http://127.0.0.1:{client_port}"), format!("http://127.0.0.1:{peer_port}"));
        let etcd = spawn(
            Command::new(binaries.join("etcd"))
                .arg("--data-dir")
                .arg(directory.join("etcd"))
                .args(["--listen-client-urls", &etcd_url, "--advertise-client-urls", &etcd_url])
                .args(["--listen-peer-urls", &peer_url, "--initial-advertise-peer-urls", &peer_url])
                .args(["--initial-cluster", &format!("default={peer_url}")])
                .arg(format!("--unsafe-no-fsync={}", fsync == Fsync::Off)),
        )?;
        let (key, certificate) = (directory.join("sa.key"), directory.join("sa.crt"));
        let tokens = directory.join("tokens.csv");
        // Any key signs service account tokens; the one of an unused administrator is at hand.
        let unused = Certificates::generate(Clock::system().now()).context("cannot make a key")?;
        std::fs::write(&key, unused.admin_key).context("cannot write the key")?;
        std::fs::write(&certificate, unused.admin_certificate).context("cannot write the certificate")?;
        std::fs::write(&tokens, format!("{TOKEN},admin,admin,system:masters\n"))
            .context("cannot write the token")?;
        let server = spawn(
            Command::new(binaries.join("kube-apiserver"))
                .args(["--etcd-servers", &etcd_url, "--bind-address", "127.0.0.1"])
                .args(["--secure-port", &port.to_string(), "--service-cluster-ip-range", "10.0.0.0/24"])
                .args(["--authorization-mode", "RBAC", "--disable-admission-plugins", "ServiceAccount"])
                .args(["--service-account-issuer", "https://kubernetes.default.svc"])
                .arg("--service-account-signing-key-file")
                .arg(&key)
                .arg("--service-account-key-file")
                .arg(&certificate)
                .arg("--token-auth-file")
                .arg(&tokens)
                .arg("--cert-dir")
                .arg(directory.join("certificates")),
        )?;
        let client = client(port)?;
        let ready = async {
            while client.request_text(super::client::request("GET", "/readyz", "", Vec::new())).await.is_err()
            {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(PATIENCE, ready).await.context("the real server does not become ready")?;
        Ok(Self { _etcd: etcd, _server: server, directory, client })
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn spawn(command: &mut Command) -> Result<Child, Failure> {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    quiet.spawn().context("cannot start the real server")
}

/// A client of the administrator; the server has signed its certificate itself.
fn client(port: u16) -> Result<Client, Failure> {
    let url = format!("https://127.0.0.1:{port}").parse().context("not a URL")?;
    let mut config = Config::new(url);
    config.accept_invalid_certs = true;
    config.auth_info.token = Some(TOKEN.to_owned().into());
    Client::try_from(config).context("cannot make a client")
}

fn free_ports() -> Result<[u16; 3], Failure> {
    let listener = || TcpListener::bind("127.0.0.1:0").context("no port is free");
    // All are held until all are known, so that they differ.
    let listeners = [listener()?, listener()?, listener()?];
    let port = |listener: &TcpListener| {
        listener.local_addr().map(|address| address.port()).context("no port is free")
    };
    Ok([port(&listeners[0])?, port(&listeners[1])?, port(&listeners[2])?])
}
