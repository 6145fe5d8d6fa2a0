//! What is known of the running cluster: one small file in the user's run directory.

use crate::shell::Failure;
use serde_json::{Value, json};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a process that was asked to end is looked at.
const POLL: Duration = Duration::from_millis(10);
/// How long it may take.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// How often a cluster that starts asks for the lock.
const LOCK_TRIES: usize = 10;

/// The running cluster.
pub(crate) struct State {
    pub(crate) url: String,
    pub(crate) pid: u32,
    pub(crate) kubeconfig: PathBuf,
}

impl State {
    /// Where state is kept: `$ORLOP_HOME`, or `orlop` in the user's state directory.
    pub(crate) fn directory() -> Result<PathBuf, Failure> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        set("ORLOP_HOME")
            .or_else(|| set("XDG_STATE_HOME").map(|base| base.join("orlop")))
            .or_else(|| set("HOME").map(|home| home.join(".local/state/orlop")))
            .ok_or_else(|| {
                Failure::new("there is no place to remember the cluster in")
                    .hint("set `ORLOP_HOME` (or `HOME`) to a directory")
            })
    }

    fn path() -> Result<PathBuf, Failure> {
        Ok(Self::directory()?.join("cluster.json"))
    }

    /// The cluster that was started last, if its file is there.
    fn load() -> Result<Option<Self>, Failure> {
        let path = Self::path()?;
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(Failure::new(format!("cannot read `{}`", path.display())).because(error));
            }
        };
        let parsed = serde_json::from_str::<Value>(&text).ok().and_then(|value| {
            Some(Self {
                url: value["url"].as_str()?.to_owned(),
                pid: u32::try_from(value["pid"].as_u64()?).ok()?,
                kubeconfig: PathBuf::from(value["kubeconfig"].as_str()?),
            })
        });
        parsed.map(Some).ok_or_else(|| {
            Failure::new(format!("`{}` is damaged", path.display()))
                .hint("delete the file; a running cluster goes on without it")
        })
    }

    /// Writes the file; only the cluster that holds the lock may.
    pub(crate) fn save(&self, _lock: &Lock) -> Result<(), Failure> {
        let value = json!({"url": self.url, "pid": self.pid, "kubeconfig": self.kubeconfig});
        write_private(&Self::path()?, &value.to_string())
    }

    /// Removes the file; only the cluster that holds the lock may.
    pub(crate) fn forget(_lock: &Lock) {
        if let Ok(path) = Self::path() {
            let _ = std::fs::remove_file(path);
        }
    }

    /// The running cluster, if there is one: its process holds the lock as long as it lives.
    pub(crate) fn running() -> Result<Option<Self>, Failure> {
        if Lock::take()?.is_some() {
            return Ok(None);
        }
        Self::load()
    }

    /// Asks the process to end and waits until it has.
    pub(crate) fn stop(&self) -> Result<(), Failure> {
        let stuck = |why: &str| {
            Failure::new(format!("process {} {why}", self.pid))
                .hint(format!("end it with `kill -9 {}`", self.pid))
        };
        let pid = self.process().ok_or_else(|| stuck("has no valid number"))?;
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)
            .map_err(|error| stuck("cannot be stopped").because(error))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| Failure::new("cannot start the async runtime").because(error))?;
        let ended = runtime.block_on(async {
            let gone = async {
                while Lock::take()?.is_none() {
                    tokio::time::sleep(POLL).await;
                }
                Ok(())
            };
            tokio::time::timeout(STOP_TIMEOUT, gone).await
        });
        ended.unwrap_or_else(|_| Err(stuck("does not end")))
    }

    fn process(&self) -> Option<rustix::process::Pid> {
        rustix::process::Pid::from_raw(i32::try_from(self.pid).ok()?)
    }
}

/// The right to run a cluster here. The system takes it back when the process ends, however it ends, so a number
/// that another process has got since is never taken for a cluster.
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// The lock, unless a running cluster has it.
    pub(crate) fn take() -> Result<Option<Self>, Failure> {
        let path = State::directory()?.join("cluster.lock");
        let cannot = |error| {
            Failure::new(format!("cannot lock `{}`", path.display()))
                .because(error)
                .hint("set `ORLOP_HOME` to a directory of your own that can be written to")
        };
        make_parent(&path).map_err(cannot)?;
        let file = File::options().write(true).create(true).truncate(false).open(&path).map_err(cannot)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(cannot(error)),
        }
    }

    /// The lock for good. Commands that only look hold it for a moment, so it is asked for a few times.
    pub(crate) async fn keep() -> Result<Option<Self>, Failure> {
        for _ in 0..LOCK_TRIES {
            if let Some(lock) = Self::take()? {
                return Ok(Some(lock));
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(None)
    }
}

fn make_parent(path: &Path) -> std::io::Result<()> {
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(directory) => std::fs::create_dir_all(directory),
        None => Ok(()),
    }
}

/// Writes a file that only its owner can read: it holds keys.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), Failure> {
    use std::io::Write as _;
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    let cannot = |error| Failure::new(format!("cannot write `{}`", path.display())).because(error);
    make_parent(path).map_err(cannot)?;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .map_err(cannot)?;
    // The mode above is for new files only.
    file.set_permissions(std::fs::Permissions::from_mode(0o600)).map_err(cannot)?;
    file.write_all(text.as_bytes()).map_err(cannot)
}
