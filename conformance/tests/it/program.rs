//! The programs that tests drive: found on PATH, or built once from their Go modules.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The version of kubectl that the sessions were recorded with.
pub(crate) static KUBECTL: Program = Program(LazyLock::new(|| {
    let chosen = std::env::var_os("ORLOP_KUBECTL").map(PathBuf::from);
    chosen.or_else(|| on_path("kubectl")).map_or_else(
        || Source { name: "kubectl-1.32.4", module: "kubectl", package: ".", version: "" }.built(),
        Ok,
    )
}));

/// helm 4.
pub(crate) static HELM_4: Program = Program(LazyLock::new(|| {
    Source {
        name: "helm-4.3.1",
        module: "helm/v4",
        package: "helm.sh/helm/v4/cmd/helm",
        version: " -X helm.sh/helm/v4/internal/version.version=v4.3.1",
    }
    .built()
}));

/// helm 3.
pub(crate) static HELM_3: Program = Program(LazyLock::new(|| {
    Source {
        name: "helm-3.22.0",
        module: "helm/v3",
        package: "helm.sh/helm/v3/cmd/helm",
        version: " -X helm.sh/helm/v3/internal/version.version=v3.22.0",
    }
    .built()
}));

/// The checks in Go, built anew when they change: Go finds out faster than a test could.
pub(crate) static GO_CLIENT: Program = Program(LazyLock::new(|| {
    Source { name: "go-client", module: "clients/go", package: ".", version: "" }.rebuilt()
}));

/// A program, or why there is none. Looked for once.
pub(crate) struct Program(LazyLock<Result<PathBuf, String>>);

impl Program {
    /// Where the program is; `None` when there is none, which is said by the test's name.
    pub(crate) fn get(&'static self, test: &str) -> Option<&'static Path> {
        match &*self.0 {
            Ok(path) => Some(path),
            Err(why) => {
                let _ = writeln!(std::io::stderr(), "skipped {test}: {why}");
                None
            }
        }
    }
}

/// A Go program: the name of its file, the directory of its module here, its package, what stamps its version.
struct Source {
    name: &'static str,
    module: &'static str,
    package: &'static str,
    version: &'static str,
}

impl Source {
    /// The program, from an earlier build where there is one.
    fn built(&self) -> Result<PathBuf, String> {
        let place = self.place();
        if place.is_file() { Ok(place) } else { self.rebuilt() }
    }

    fn place(&self) -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(self.name)
    }

    /// The program from what is there now, where such builds are asked for.
    fn rebuilt(&self) -> Result<PathBuf, String> {
        if std::env::var_os("CI").is_none() && std::env::var_os("ORLOP_CONFORMANCE").is_none() {
            return Err(format!(
                "no {}; ORLOP_CONFORMANCE=1 builds it with Go (some minutes, once)",
                self.name
            ));
        }
        let go = on_path("go").ok_or_else(|| format!("no {} and no Go on PATH", self.name))?;
        let place = self.place();
        self.build(&go, &place).map(|()| place)
    }

    /// Builds the program beside its place and moves it there, so that a build that is cut short leaves nothing.
    fn build(&self, go: &Path, place: &Path) -> Result<(), String> {
        let partial = place.with_extension(std::process::id().to_string());
        let output = std::process::Command::new(go)
            .args(["build", "-trimpath", &format!("-ldflags=-s -w{}", self.version), "-o"])
            .args([partial.as_os_str(), self.package.as_ref()])
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(self.module))
            .env("CGO_ENABLED", "0")
            .output()
            .map_err(|error| format!("Go cannot be run: {error}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{} cannot be built: {}", self.name, said.trim()));
        }
        std::fs::rename(&partial, place)
            .map_err(|error| format!("{} cannot be put in its place: {error}", self.name))
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}
