//! The files of a journal: whatever they hold, opening them gives a state or says why not.

use super::{Form, Target};
use bytes::Bytes;
use orlop_journal::{Disk, Keep};
use orlop_store::{Backup, Change, Entry, Expect, Key, Limits, Revision, Store, Table};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A header that only knows its mark.
#[derive(Debug)]
struct Mark(u64);

impl Keep for Mark {
    fn mark(&self) -> u64 {
        self.0
    }

    fn restore(body: &Bytes, mark: u64) -> Option<Self> {
        (body != "not an object").then_some(Self(mark))
    }
}

/// The last file of a journal, changed.
pub(super) struct Journal {
    directory: tempfile::TempDir,
    /// What the file is called, and what a sound one holds.
    name: PathBuf,
    sound: Vec<u8>,
}

impl Journal {
    pub(super) fn new() -> Self {
        // Each input is synced; where memory can be a directory, that costs nothing.
        let memory = Path::new("/dev/shm");
        let directory = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let directory = directory.expect("a temporary directory can be made");
        let (name, sound) = sound(directory.path());
        Self { directory, name, sound }
    }
}

/// A file as a journal writes it.
fn sound(directory: &Path) -> (PathBuf, Vec<u8>) {
    {
        let (disk, state) = Disk::<Mark>::open(directory).expect("a new journal opens");
        let store = Store::with_journal(Limits::default(), &state, Arc::new(disk));
        let table = Table::new("t");
        for n in 0..4 {
            let key = Key::new("ns", &format!("k{n}"));
            let put = |_| Change::Put { body: format!("body {n}").into(), header: Mark(n) };
            store.commit(&table, &key, Expect::Absent, 0, put).expect("nobody else writes");
        }
        let key = Key::new("ns", "k1");
        let entry = store.get(&table, &key).expect("it was put");
        let remove = |_| Change::Delete { body: Bytes::new(), header: Mark(0) };
        store.commit(&table, &key, Expect::At(entry.revision), 0, remove).expect("nobody else writes");
    }
    let files = std::fs::read_dir(directory).expect("it is a directory");
    let files = files.filter_map(|entry| Some(entry.ok()?.path()));
    let read = |path: PathBuf| std::fs::read(&path).ok().map(|bytes| (path, bytes));
    files.filter_map(read).max_by_key(|(_, bytes)| bytes.len()).expect("the journal has a file")
}

/// What a state holds: where, since when, and what.
fn contents(state: &Backup<Mark>) -> Vec<(String, Revision, u64, Bytes)> {
    let row = |(table, entry): (&Table, &Arc<Entry<Mark>>)| {
        let place = format!("{} {}", table.as_str(), entry.key.as_str());
        (place, entry.revision, entry.header.0, entry.body.clone())
    };
    state.iter().map(row).collect()
}

impl Target for Journal {
    fn form(&self) -> Form {
        Form::Bytes
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        let half = self.sound.len() / 2;
        vec![self.sound.clone(), self.sound[..half].to_vec(), Vec::new()]
    }

    fn words(&self) -> Vec<String> {
        let mut all: Vec<String> = (0..16_u8).map(|byte| char::from(byte).to_string()).collect();
        all.extend(["\0\0\0\0", "\0\0\0\u{7f}", "ns/k1", "not an object"].map(str::to_owned));
        all
    }

    fn run(&mut self, input: &[u8]) -> Result<String, String> {
        let cannot = |error: std::io::Error| format!("the target itself failed: {error}");
        for entry in std::fs::read_dir(self.directory.path()).map_err(cannot)? {
            std::fs::remove_file(entry.map_err(cannot)?.path()).map_err(cannot)?;
        }
        std::fs::write(&self.name, input).map_err(cannot)?;
        let (first, revision) = match Disk::<Mark>::open(self.directory.path()) {
            Ok((_, state)) => (contents(&state), state.revision),
            Err(error) => {
                // What is damaged is left as it was.
                let left = std::fs::read(&self.name).map_err(cannot)?;
                let text = error.to_string().replace(&*self.directory.path().to_string_lossy(), "");
                return if left == input {
                    Ok(text)
                } else {
                    Err(format!("changed what it refused: {text}"))
                };
            }
        };
        // What was once read is read again as the same; revisions only grow.
        match Disk::<Mark>::open(self.directory.path()) {
            Ok((_, state)) if state.revision < revision => {
                Err(format!("was at {revision}, and is at {} the second time", state.revision))
            }
            Ok((_, state)) if contents(&state) == first => Ok(format!("ok {}", first.len().min(8))),
            Ok((_, state)) => {
                Err(format!("held {first:?}, and holds {:?} the second time", contents(&state)))
            }
            Err(error) => Err(format!("cannot be read again: {error}")),
        }
    }
}
