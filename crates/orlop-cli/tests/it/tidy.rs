//! Invariants of absence: what must not be in which room. ARCHITECTURE.md says why.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Names of a crate's ordinary dependencies, read from its manifest.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut inside = false;
    let mut names = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.trim() == "[dependencies]";
        } else if inside && let Some((name, _)) = line.split_once(['=', '.', ' ']) {
            names.insert(name.trim().to_owned());
        }
    }
    names
}

fn crates() -> BTreeMap<String, BTreeSet<String>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(root().join("crates")).expect("the workspace has crates") {
        let path = entry.expect("a directory entry").path();
        let Ok(manifest) = fs::read_to_string(path.join("Cargo.toml")) else { continue };
        let name = path.file_name().expect("a crate has a name").to_string_lossy().into_owned();
        all.insert(name, dependencies(&manifest));
    }
    all
}

fn sources(under: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(under).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() && name != "target" && name != ".git" {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn pure_rooms_do_no_io_and_take_no_clock() {
    let crates = crates();
    let forbidden = [
        "tokio",
        "hyper",
        "http",
        "orlop-clock",
        "jiff",
        "rand_chacha",
        "kube",
        "k8s-openapi",
        "orlop-apiserver",
    ];
    for room in [
        "orlop-core",
        "orlop-merge",
        "orlop-schema",
        "orlop-kinds",
        "orlop-cel",
        "orlop-gotemplate",
        "orlop-helm",
    ] {
        for name in forbidden {
            assert!(!crates[room].contains(name), "{room} must not depend on {name}");
        }
        let mut files = Vec::new();
        sources(&root().join("crates").join(room).join("src"), &mut files);
        for file in files {
            let text = fs::read_to_string(&file).expect("a source file can be read");
            for word in ["std::fs", "net::Tcp", "net::Udp", "std::time", "std::env", "std::process"] {
                let used =
                    text.lines().any(|line| !line.trim_start().starts_with("//") && line.contains(word));
                let in_tests = file.components().any(|part| part.as_os_str() == "tests.rs");
                assert!(!used || in_tests, "{} must not use {word}", file.display());
            }
        }
    }
}

#[test]
fn heavy_clients_stay_above_the_server() {
    for (name, dependencies) in crates() {
        let above = matches!(name.as_str(), "orlop-cluster");
        for heavy in ["kube", "k8s-openapi"] {
            assert!(above || !dependencies.contains(heavy), "{name} must not depend on {heavy}");
        }
    }
}

#[test]
fn the_server_knows_no_client_and_no_controller() {
    let crates = crates();
    for name in ["orlop-cluster", "orlop-cli", "orlop-runtime", "orlop-controllers"] {
        assert!(!crates["orlop-apiserver"].contains(name), "orlop-apiserver must not depend on {name}");
    }
}

#[test]
fn lints_are_expected_with_a_reason_never_allowed() {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let marker = ["#[", "allow("].concat();
    for file in files {
        let text = fs::read_to_string(&file).expect("a source file can be read");
        assert!(!text.contains(&marker), "{} allows a lint", file.display());
    }
}

#[test]
fn every_crate_says_what_it_is() {
    for name in crates().keys() {
        let readme = root().join("crates").join(name).join("README.md");
        let text = fs::read_to_string(&readme).unwrap_or_default();
        assert!(
            text.starts_with(&format!("# {name}\n")),
            "{name} needs a README.md that begins with its name"
        );
    }
}

#[test]
fn the_readme_names_the_two_commands() {
    let text = fs::read_to_string(root().join("README.md")).expect("there is a README");
    for command in ["cargo run --release -- demo", "cargo test --workspace"] {
        assert!(text.contains(command), "README.md must name `{command}`");
    }
}
