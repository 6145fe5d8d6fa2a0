//! Opening a directory: what is in it, or why it cannot be used. Nothing is written here.

use crate::Keep;
use crate::frame::{self, FORMAT, Found, Frame, HEADER_BYTES, MAGIC};
use bytes::Bytes;
use orlop_store::{Backup, Entry, Key, Revision, Table};
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The end of a journal's name.
pub(crate) const EXTENSION: &str = "journal";
/// How far revisions jump at a start: more than can have been seen and lost in one power cut.
const REVISION_GAP: u64 = 1 << 16;

/// A directory that cannot be used; nothing in it was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A file or the directory cannot be read or made.
    #[error("cannot use `{}`", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Another process uses the directory.
    #[error("`{}` is in use by another process", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// A file is not a journal.
    #[error("`{}` is not a journal of orlop", path.display())]
    NotAJournal {
        /// Which.
        path: PathBuf,
    },
    /// A file was written by a newer version of this program.
    #[error("`{}` has format {found}, and this version of orlop reads formats up to {FORMAT}", path.display())]
    Newer {
        /// Which.
        path: PathBuf,
        /// Its format.
        found: u16,
    },
    /// A file is damaged.
    #[error("`{}` is damaged at byte {at}", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// Where the damage begins.
        at: usize,
    },
    /// An object is not what it should be, though its checksum fits.
    #[error("`{}` holds an object that cannot be read: `{key}` of `{table}`", path.display())]
    Object {
        /// The directory.
        path: PathBuf,
        /// The object's table.
        table: String,
        /// Its key.
        key: String,
    },
}

/// What a directory holds.
pub(crate) struct Loaded<H> {
    pub(crate) state: Backup<H>,
    /// The highest number of a file.
    pub(crate) generation: u64,
    /// The right to use the directory.
    pub(crate) lock: File,
}

/// The newest that is known of an object: its mark and body, or that it is gone.
struct Slot {
    revision: Revision,
    object: Option<(u64, Bytes)>,
}

pub(crate) fn load<H: Keep>(directory: &Path) -> Result<Loaded<H>, OpenError> {
    let lock = lock(directory)?;
    let mut slots: BTreeMap<(Table, Key), Slot> = BTreeMap::new();
    let mut newest = Revision(0);
    let mut generation = 0;
    for (number, path) in files(directory)? {
        generation = number;
        let file = read_file(&path)?;
        let mut at = HEADER_BYTES;
        loop {
            let (revision, place, object) = match frame::read(&file, at) {
                Found::End | Found::Torn => break,
                Found::Damage => return Err(OpenError::Damaged { path, at }),
                Found::Frame(Frame::Clear { revision }, next) => {
                    slots.clear();
                    newest = newest.max(revision);
                    at = next;
                    continue;
                }
                Found::Frame(Frame::Reached { revision }, next) => {
                    newest = newest.max(revision);
                    at = next;
                    continue;
                }
                Found::Frame(Frame::Put { revision, mark, table, key, body }, next) => {
                    at = next;
                    (revision, (table, key), Some((mark, body)))
                }
                Found::Frame(Frame::Remove { revision, table, key }, next) => {
                    at = next;
                    (revision, (table, key), None)
                }
            };
            newest = newest.max(revision);
            let slot = slots.entry(place).or_insert(Slot { revision, object: None });
            if slot.revision <= revision {
                *slot = Slot { revision, object };
            }
        }
    }
    let mut state =
        Backup::empty(Revision(if generation == 0 { 0 } else { newest.0.saturating_add(REVISION_GAP) }));
    for ((table, key), slot) in slots {
        let Some((mark, body)) = slot.object else { continue };
        // The bytes of the file are let go.
        let body = Bytes::copy_from_slice(&body);
        let Some(header) = H::restore(&body, mark) else {
            let (table, key) = (table.as_str().to_owned(), key.as_str().to_owned());
            return Err(OpenError::Object { path: directory.to_owned(), table, key });
        };
        state.insert(&table, Entry { key, revision: slot.revision, body, header });
    }
    Ok(Loaded { state, generation, lock })
}

fn lock(directory: &Path) -> Result<File, OpenError> {
    let cannot = |path: &Path| {
        let path = path.to_owned();
        move |source| OpenError::Io { path, source }
    };
    if !directory.is_dir() {
        std::fs::create_dir_all(directory).map_err(cannot(directory))?;
        let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        File::open(parent).and_then(|parent| parent.sync_all()).map_err(cannot(parent))?;
    }
    let path = directory.join("lock");
    let file = File::options().write(true).create(true).truncate(false).open(&path).map_err(cannot(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: directory.to_owned() }),
        Err(TryLockError::Error(source)) => Err(OpenError::Io { path, source }),
    }
}

/// The journals of a directory, oldest first.
pub(crate) fn files(directory: &Path) -> Result<Vec<(u64, PathBuf)>, OpenError> {
    let cannot = |source| OpenError::Io { path: directory.to_owned(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            let number = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
            match number {
                Some(number) => found.push((number, path)),
                None => return Err(OpenError::NotAJournal { path }),
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read_file(path: &Path) -> Result<Bytes, OpenError> {
    let path = || path.to_owned();
    let file = std::fs::read(path()).map_err(|source| OpenError::Io { path: path(), source })?;
    if file.len() < HEADER_BYTES && frame::header().starts_with(&file) {
        // A start that ended before it had begun.
        return Ok(Bytes::from(frame::header()));
    }
    let Some(version) = file.strip_prefix(MAGIC).and_then(|rest| rest.first_chunk::<2>()) else {
        return Err(OpenError::NotAJournal { path: path() });
    };
    match u16::from_le_bytes(*version) {
        FORMAT => Ok(file.into()),
        found if found > FORMAT => Err(OpenError::Newer { path: path(), found }),
        _ => Err(OpenError::Damaged { path: path(), at: MAGIC.len() }),
    }
}
