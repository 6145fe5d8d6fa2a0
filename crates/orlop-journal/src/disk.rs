//! The journal at work: changes are appended where they are made, one thread syncs them and keeps the files short.

use crate::Keep;
use crate::frame;
use crate::load::{self, EXTENSION, OpenError};
use orlop_store::{Backup, Entry, EventKind, Journal, Refused, Revision, Table};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::watch;

/// A journal shorter than this is not worth shortening.
const LONG_BYTES_MIN: u64 = 16 * 1024 * 1024;
/// How many times as long as the state a journal may become.
const LONG_TIMES: u64 = 3;
/// The state is written in pieces of about this size, between which changes are synced.
const PIECE_BYTES: usize = 256 * 1024;

/// The disk failed, and nothing more is kept until the program is started again.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the journal is broken: {why}")]
pub struct Broken {
    why: Arc<str>,
}

/// A directory that keeps a store.
pub struct Disk<H: Keep> {
    shared: Arc<Shared<H>>,
    durable: watch::Receiver<Result<Revision, Broken>>,
    syncer: Option<JoinHandle<()>>,
    _lock: File,
}

struct Shared<H> {
    directory: PathBuf,
    tail: Mutex<Tail<H>>,
    wake: Condvar,
}

/// Where the next change goes, and what the thread has to do.
struct Tail<H> {
    file: Arc<File>,
    generation: u64,
    /// The length of the file.
    bytes: u64,
    /// How long the file may become.
    long: u64,
    /// The newest change that was appended.
    appended: Revision,
    /// Files that must be synced too before changes are durable.
    older: Vec<Arc<File>>,
    /// The state that is to be written to the file, after which older files can go.
    snapshot: Option<Backup<H>>,
    broken: Option<Broken>,
    closing: bool,
}

impl<H: Keep> Disk<H> {
    /// Opens a directory, which is made if it is missing, and gives the state it holds.
    pub fn open(directory: &Path) -> Result<(Self, Backup<H>), OpenError> {
        let load::Loaded { state, generation, lock } = load::load(directory)?;
        let generation = generation + 1;
        let cannot = |source| OpenError::Io { path: directory.to_owned(), source };
        remove_drafts(directory);
        let (file, bytes) = begin(directory, generation, state.revision).map_err(cannot)?;
        sync_directory(directory).map_err(cannot)?;
        let (published, durable) = watch::channel(Ok(state.revision));
        let tail = Tail {
            file: Arc::new(file),
            generation,
            bytes,
            long: LONG_BYTES_MIN,
            appended: state.revision,
            older: Vec::new(),
            snapshot: Some(state.clone()),
            broken: None,
            closing: false,
        };
        let shared = Arc::new(Shared {
            directory: directory.to_owned(),
            tail: Mutex::new(tail),
            wake: Condvar::new(),
        });
        let worker = shared.clone();
        let syncer = std::thread::Builder::new().name("orlop-journal".to_owned());
        let syncer = syncer.spawn(move || worker.work(&published)).map_err(cannot)?;
        Ok((Self { shared, durable, syncer: Some(syncer), _lock: lock }, state))
    }

    /// Ready when everything that has been recorded so far is on the disk.
    pub async fn settled(&self) -> Result<(), Broken> {
        let revision = {
            let tail = self.shared.tail();
            if let Some(broken) = &tail.broken {
                return Err(broken.clone());
            }
            tail.appended
        };
        let mut durable = self.durable.clone();
        let reached =
            durable.wait_for(|durable| durable.as_ref().is_ok_and(|d| *d >= revision) || durable.is_err());
        match reached.await {
            Ok(state) => state.clone().map(|_| ()),
            // The thread ends with this value, and after a panic.
            Err(_) => Err(Broken { why: "its thread has ended".into() }),
        }
    }
}

impl<H: Keep> Drop for Disk<H> {
    fn drop(&mut self) {
        self.shared.tail().closing = true;
        self.shared.wake.notify_one();
        if let Some(syncer) = self.syncer.take() {
            // If it panicked, whoever waited has been told.
            let _ = syncer.join();
        }
    }
}

impl<H: Keep> Journal<H> for Disk<H> {
    fn record(&self, table: &Table, kind: EventKind, entry: &Entry<H>) -> Result<(), Refused> {
        let mut out = Vec::with_capacity(entry.body.len() + 128);
        match kind {
            EventKind::Deleted => frame::remove(&mut out, entry.revision, table, &entry.key),
            EventKind::Created | EventKind::Updated => put(&mut out, table, entry),
        }
        let mut tail = self.shared.tail();
        let appended = tail.append(&out);
        if appended.is_ok() {
            tail.appended = entry.revision;
        }
        // If it failed, whoever waits must be told.
        self.shared.wake.notify_one();
        appended
    }

    fn replace(&self, with: &Backup<H>) -> Result<(), Refused> {
        let mut tail = self.shared.tail();
        if tail.broken.is_some() {
            return Err(Refused);
        }
        let generation = tail.generation + 1;
        match rewrite(&self.shared.directory, generation, with) {
            Ok((file, bytes)) => {
                tail.file = Arc::new(file);
                tail.generation = generation;
                tail.bytes = bytes;
                tail.long = LONG_BYTES_MIN.max(bytes.saturating_mul(LONG_TIMES));
                tail.appended = with.revision;
                tail.snapshot = None;
                tail.older.clear();
                self.shared.wake.notify_one();
                Ok(())
            }
            Err(error) => {
                tail.fail(&error);
                self.shared.wake.notify_one();
                Err(Refused)
            }
        }
    }

    fn is_long(&self) -> bool {
        let tail = self.shared.tail();
        tail.snapshot.is_none() && tail.bytes > tail.long && tail.broken.is_none()
    }

    fn shorten(&self, state: Backup<H>) {
        let mut tail = self.shared.tail();
        let generation = tail.generation + 1;
        match begin(&self.shared.directory, generation, state.revision) {
            Ok((file, bytes)) => {
                let older = std::mem::replace(&mut tail.file, Arc::new(file));
                tail.older.push(older);
                tail.generation = generation;
                tail.bytes = bytes;
                tail.snapshot = Some(state);
            }
            // The long one does as well.
            Err(_) => tail.long = tail.long.saturating_mul(2),
        }
        self.shared.wake.notify_one();
    }
}

impl<H> Tail<H> {
    /// Appends whole frames, or nothing.
    fn append(&mut self, frames: &[u8]) -> Result<(), Refused> {
        if self.broken.is_some() {
            return Err(Refused);
        }
        match (&*self.file).write_all(frames) {
            Ok(()) => {
                self.bytes += frames.len() as u64;
                Ok(())
            }
            Err(error) => {
                // What was written of it looks as after a crash; nothing sound may follow it.
                self.fail(&error);
                Err(Refused)
            }
        }
    }

    fn fail(&mut self, error: &io::Error) {
        self.broken.get_or_insert_with(|| Broken { why: error.to_string().into() });
    }
}

impl<H: Keep> Shared<H> {
    fn tail(&self) -> MutexGuard<'_, Tail<H>> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread: syncs what was appended, then writes the state if that is asked for.
    fn work(&self, published: &watch::Sender<Result<Revision, Broken>>) {
        let mut synced = published.borrow().clone().unwrap_or_default();
        loop {
            let mut tail = self.tail();
            while tail.appended <= synced && tail.snapshot.is_none() && tail.broken.is_none() && !tail.closing
            {
                tail = self.wake.wait(tail).unwrap_or_else(PoisonError::into_inner);
            }
            if let Some(broken) = tail.broken.clone() {
                published.send_modify(|state| *state = Err(broken));
                return;
            }
            let closing = tail.closing && tail.appended <= synced && tail.snapshot.is_none();
            drop(tail);
            if closing {
                return;
            }
            match self.sync() {
                Ok(revision) => {
                    synced = revision;
                    published.send_modify(|state| *state = Ok(revision));
                    let (snapshot, generation) = {
                        let tail = self.tail();
                        (tail.snapshot.clone(), tail.generation)
                    };
                    if let Some(snapshot) = snapshot {
                        self.write(&snapshot, generation, |revision| {
                            synced = revision;
                            published.send_modify(|state| *state = Ok(revision));
                        });
                    }
                }
                Err(error) => self.tail().fail(&error),
            }
        }
    }

    /// Brings everything that was appended so far to the disk.
    fn sync(&self) -> io::Result<Revision> {
        let (file, older, appended) = {
            let mut tail = self.tail();
            (tail.file.clone(), std::mem::take(&mut tail.older), tail.appended)
        };
        if !older.is_empty() {
            for file in older {
                file.sync_data()?;
            }
            sync_directory(&self.directory)?;
        }
        file.sync_data()?;
        Ok(appended)
    }

    /// Writes the state piece by piece to the file that changes go to as well; then older files are not needed. If
    /// that is not the file of `generation` any more, all was replaced and the state is not wanted.
    fn write(&self, state: &Backup<H>, generation: u64, mut synced: impl FnMut(Revision)) {
        let mut piece = Vec::with_capacity(PIECE_BYTES * 2);
        let mut written = 0;
        let mut objects = state.iter().peekable();
        while let Some((table, entry)) = objects.next() {
            put(&mut piece, table, entry);
            if piece.len() < PIECE_BYTES && objects.peek().is_some() {
                continue;
            }
            written += piece.len() as u64;
            let mut tail = self.tail();
            if tail.generation != generation || tail.append(&piece).is_err() {
                // All was replaced meanwhile, or the disk is full: the older files stay.
                return;
            }
            drop(tail);
            piece.clear();
            match self.sync() {
                Ok(revision) => synced(revision),
                Err(error) => return self.tail().fail(&error),
            }
        }
        let mut tail = self.tail();
        if tail.generation == generation {
            tail.snapshot = None;
            tail.long = LONG_BYTES_MIN.max(written.saturating_mul(LONG_TIMES));
            drop(tail);
            remove_before(&self.directory, generation);
        }
    }
}

fn put<H: Keep>(out: &mut Vec<u8>, table: &Table, entry: &Entry<H>) {
    frame::put(out, entry.revision, entry.header.mark(), table, &entry.key, &entry.body);
}

fn path(directory: &Path, generation: u64) -> PathBuf {
    directory.join(format!("{generation:010}.{EXTENSION}"))
}

/// A new file that says nothing but where revisions are.
fn begin(directory: &Path, generation: u64, revision: Revision) -> io::Result<(File, u64)> {
    let path = path(directory, generation);
    let mut file = options().create_new(true).open(&path)?;
    let mut head = frame::header();
    frame::reached(&mut head, revision);
    if let Err(error) = file.write_all(&head) {
        // Half a head is no file to go on from.
        let _ = std::fs::remove_file(&path);
        return Err(error);
    }
    Ok((file, head.len() as u64))
}

/// A file that holds one state and voids all before it. It appears as a whole or not at all.
fn rewrite<H: Keep>(directory: &Path, generation: u64, state: &Backup<H>) -> io::Result<(File, u64)> {
    let target = path(directory, generation);
    let draft = target.with_extension("draft");
    remove_drafts(directory);
    let mut file = options().create_new(true).open(&draft)?;
    let mut piece = frame::header();
    frame::clear(&mut piece, state.revision);
    let mut bytes = 0;
    for (table, entry) in state.iter() {
        put(&mut piece, table, entry);
        if piece.len() >= PIECE_BYTES {
            file.write_all(&piece)?;
            bytes += piece.len() as u64;
            piece.clear();
        }
    }
    file.write_all(&piece)?;
    file.sync_data()?;
    std::fs::rename(&draft, &target)?;
    sync_directory(directory)?;
    remove_before(directory, generation);
    Ok((file, bytes + piece.len() as u64))
}

fn options() -> std::fs::OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = File::options();
    options.append(true).mode(0o600);
    options
}

/// Removes what a rewrite left that was cut short.
fn remove_drafts(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "draft") {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Removes what is not needed any more, the oldest first. If one stays, those after it must stay too: they may say that
/// something in it is gone. The next start reads them all and tries again.
fn remove_before(directory: &Path, generation: u64) {
    for (number, path) in load::files(directory).unwrap_or_default() {
        if number >= generation || std::fs::remove_file(path).is_err() {
            return;
        }
    }
}
