//! A real kubectl with a server of its own: found on PATH, or built from its Go module.

use orlop_cluster::Cluster;
use std::ffi::OsString;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::LazyLock;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::task::JoinSet;

/// The kubectl to drive, or why there is none. Looked for once.
static PROGRAM: LazyLock<Result<PathBuf, String>> = LazyLock::new(program);

/// kubectl, a cluster for it on a socket, and a home directory that nobody else has.
pub(crate) struct Kubectl {
    program: &'static Path,
    pub(crate) url: String,
    home: TempDir,
    /// Ends with this value.
    _server: JoinSet<()>,
}

impl Kubectl {
    /// Starts a cluster; `None` when there is no kubectl, which is said by the test's name.
    pub(crate) async fn start(test: &str) -> Option<Self> {
        let program = match &*PROGRAM {
            Ok(program) => program,
            Err(why) => {
                let _ = writeln!(std::io::stderr(), "skipped {test}: {why}");
                return None;
            }
        };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let serving = Cluster::start().serve(address).await.expect("a free port can be listened on");
        let home = TempDir::new().expect("a temporary directory can be made");
        std::fs::write(home.path().join("kubeconfig"), serving.kubeconfig()).expect("a file can be written");
        let url = serving.url().to_owned();
        let mut server = JoinSet::new();
        server.spawn(serving.run(std::future::pending()));
        Some(Self { program, url, home, _server: server })
    }

    /// kubectl with arguments, in the directory of the manifests, ready to be spawned.
    pub(crate) fn command(&self, arguments: &[String]) -> Command {
        let mut command = Command::new(self.program);
        command
            .args(arguments)
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/manifests"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin")))
            .env("HOME", self.home.path())
            .env("KUBECONFIG", self.home.path().join("kubeconfig"))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Runs kubectl to its end.
    pub(crate) async fn run(&self, arguments: &[String]) -> Output {
        self.command(arguments).output().await.expect("kubectl can be run")
    }

    /// Runs kubectl, which must succeed, and gives what it prints.
    pub(crate) async fn ok(&self, arguments: &str) -> String {
        let output = self.run(&words(arguments)).await;
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// Splits a line into words as a shell does, with single quotes and nothing else.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for (n, part) in line.split('\'').enumerate() {
        if n % 2 == 1 {
            words.last_mut().expect("there is always a word").push_str(part);
            continue;
        }
        for (m, word) in part.split(' ').enumerate() {
            if m > 0 {
                words.push(String::new());
            }
            words.last_mut().expect("there is always a word").push_str(word);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn program() -> Result<PathBuf, String> {
    if let Some(chosen) = std::env::var_os("ORLOP_KUBECTL") {
        return Ok(PathBuf::from(chosen));
    }
    if let Some(found) = on_path("kubectl") {
        return Ok(found);
    }
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kubectl-1.32.4");
    if built.is_file() {
        return Ok(built);
    }
    if std::env::var_os("CI").is_none() && std::env::var_os("ORLOP_CONFORMANCE").is_none() {
        return Err(
            "no kubectl on PATH; ORLOP_CONFORMANCE=1 builds one with Go (some minutes, once)".to_owned()
        );
    }
    let go = on_path("go").ok_or("no kubectl and no Go on PATH")?;
    build(&go, &built).map(|()| built)
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

/// Builds kubectl beside its place and moves it there, so that a build that is cut short leaves nothing.
fn build(go: &Path, to: &Path) -> Result<(), String> {
    let partial = to.with_extension(std::process::id().to_string());
    let output = std::process::Command::new(go)
        .args(["build", "-trimpath", "-ldflags=-s -w", "-o"])
        .arg(&partial)
        .arg(".")
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/kubectl"))
        .env("CGO_ENABLED", "0")
        .output()
        .map_err(|error| format!("Go cannot be run: {error}"))?;
    if !output.status.success() {
        return Err(format!("kubectl cannot be built: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    std::fs::rename(&partial, to).map_err(|error| format!("kubectl cannot be put in its place: {error}"))
}

#[test]
fn words_are_split_as_a_shell_splits_them() {
    assert_eq!(words("get cm  a -o jsonpath='{.data} x'"), ["get", "cm", "a", "-o", "jsonpath={.data} x"]);
}
