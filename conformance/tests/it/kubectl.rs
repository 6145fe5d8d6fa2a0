//! A real kubectl with a server of its own.

use crate::program;
use orlop_cluster::Cluster;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Output, Stdio};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::task::JoinSet;

/// kubectl, a cluster for it on a socket, and a home directory that nobody else has.
///
/// With `ORLOP_KUBECONFIG` the cluster is the one of that file: to compare with a real one.
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
        let program = program::KUBECTL.get(test)?;
        let home = TempDir::new().expect("a temporary directory can be made");
        let mut server = JoinSet::new();
        let (url, kubeconfig) = match std::env::var_os("ORLOP_KUBECONFIG") {
            Some(real) => {
                let text = std::fs::read_to_string(real).expect("ORLOP_KUBECONFIG can be read");
                let url = text.split_once("server: ").and_then(|(_, rest)| rest.split([',', '\n']).next());
                (url.unwrap_or_default().trim_matches(['"', ' ']).to_owned(), text)
            }
            None => serve(&Cluster::start(), &mut server).await,
        };
        std::fs::write(home.path().join("kubeconfig"), kubeconfig).expect("a file can be written");
        Some(Self { program, url, home, _server: server })
    }

    /// kubectl with arguments, in the directory of the manifests, ready to be spawned.
    pub(crate) fn command(&self, arguments: &[String]) -> Command {
        self.other(self.program, arguments)
    }

    /// Another program with the same surroundings.
    pub(crate) fn other(&self, program: &Path, arguments: &[String]) -> Command {
        let mut command = Command::new(program);
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

/// Lets a cluster listen on a free port until the task ends; gives its URL and a kubeconfig.
pub(crate) async fn serve(cluster: &Cluster, server: &mut JoinSet<()>) -> (String, String) {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let serving = cluster.serve(address).await.expect("a free port can be listened on");
    let reached = (serving.url().to_owned(), serving.kubeconfig().to_owned());
    server.spawn(serving.run(std::future::pending()));
    reached
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

#[test]
fn words_are_split_as_a_shell_splits_them() {
    assert_eq!(words("get cm  a -o jsonpath='{.data} x'"), ["get", "cm", "a", "-o", "jsonpath={.data} x"]);
}
