//! Frames: the unit in which a journal is written, with a checksum of its own.

use bytes::Bytes;
use orlop_store::{Key, Revision, Table};

/// How a file begins; the number of the format follows.
pub(crate) const MAGIC: &[u8] = b"orlop-journal\n";
/// The format that is written and read here.
pub(crate) const FORMAT: u16 = 1;
/// Where the frames begin.
pub(crate) const HEADER_BYTES: usize = MAGIC.len() + 2;
/// Length and checksum.
const PREFIX_BYTES: usize = 8;
/// No object is as large; a length beyond it is none.
const PAYLOAD_BYTES_MAX: usize = 1024 * 1024 * 1024;

const PUT: u8 = 1;
const REMOVE: u8 = 2;
const CLEAR: u8 = 3;
const REACHED: u8 = 4;

/// What a frame says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Put { revision: Revision, mark: u64, table: Table, key: Key, body: Bytes },
    Remove { revision: Revision, table: Table, key: Key },
    Clear { revision: Revision },
    Reached { revision: Revision },
}

/// What is at a place in a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A frame, and where the next one begins.
    Frame(Frame, usize),
    /// The end of the file.
    End,
    /// The beginning of a frame whose rest was never written.
    Torn,
    /// Something else.
    Damage,
}

/// The first bytes of a file.
pub(crate) fn header() -> Vec<u8> {
    [MAGIC, &FORMAT.to_le_bytes()].concat()
}

/// Appends the frame of an object as it is.
pub(crate) fn put(out: &mut Vec<u8>, revision: Revision, mark: u64, table: &Table, key: &Key, body: &[u8]) {
    frame(out, |out| {
        out.push(PUT);
        out.extend(revision.0.to_le_bytes());
        out.extend(mark.to_le_bytes());
        text(out, table.as_str());
        text(out, key.as_str());
        out.extend_from_slice(body);
    });
}

/// Appends the frame of an object that is gone.
pub(crate) fn remove(out: &mut Vec<u8>, revision: Revision, table: &Table, key: &Key) {
    frame(out, |out| {
        out.push(REMOVE);
        out.extend(revision.0.to_le_bytes());
        text(out, table.as_str());
        text(out, key.as_str());
    });
}

/// Appends the frame that voids all files before this one.
pub(crate) fn clear(out: &mut Vec<u8>, revision: Revision) {
    frame(out, |out| {
        out.push(CLEAR);
        out.extend(revision.0.to_le_bytes());
    });
}

/// Appends the frame that says how far revisions are.
pub(crate) fn reached(out: &mut Vec<u8>, revision: Revision) {
    frame(out, |out| {
        out.push(REACHED);
        out.extend(revision.0.to_le_bytes());
    });
}

fn frame(out: &mut Vec<u8>, payload: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([0; PREFIX_BYTES]);
    payload(out);
    let (prefix, payload) = out[start..].split_at_mut(PREFIX_BYTES);
    prefix[..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    prefix[4..].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
}

/// Names of tables and keys have passed validation: they are far shorter than two bytes can say.
fn text(out: &mut Vec<u8>, text: &str) {
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    out.extend(length.to_le_bytes());
    out.extend_from_slice(&text.as_bytes()[..usize::from(length)]);
}

/// What is in `file` at `at`.
pub(crate) fn read(file: &Bytes, at: usize) -> Found {
    if at >= file.len() {
        return Found::End;
    }
    match sound(file, at) {
        Some((payload, next)) => match parse(&payload) {
            Some(frame) => Found::Frame(frame, next),
            None => Found::Damage,
        },
        None if is_torn(file, at) => Found::Torn,
        None => Found::Damage,
    }
}

/// A payload that fits its checksum, and where it ends.
fn sound(file: &Bytes, at: usize) -> Option<(Bytes, usize)> {
    let (length, checksum) = prefix(file, at)?;
    let start = at + PREFIX_BYTES;
    let end = start.checked_add(length).filter(|end| *end <= file.len())?;
    (length > 0 && crc32fast::hash(&file[start..end]) == checksum).then(|| (file.slice(start..end), end))
}

fn prefix(file: &Bytes, at: usize) -> Option<(usize, u32)> {
    let bytes = file.get(at..at + PREFIX_BYTES)?;
    let number = |range: std::ops::Range<usize>| bytes[range].try_into().ok().map(u32::from_le_bytes);
    let length = usize::try_from(number(0..4)?).ok().filter(|length| *length <= PAYLOAD_BYTES_MAX)?;
    Some((length, number(4..8)?))
}

/// A crash leaves the beginning of a frame, or room that was never filled. Nothing sound comes after it.
fn is_torn(file: &Bytes, at: usize) -> bool {
    let rest = &file[at..];
    let is_cut = match prefix(file, at) {
        Some((length, _)) => PREFIX_BYTES + length > rest.len(),
        None => rest.len() < PREFIX_BYTES,
    };
    let is_unfilled = rest.last() == Some(&0);
    (is_cut || is_unfilled) && (at + 1..file.len()).all(|later| sound(file, later).is_none())
}

fn parse(payload: &Bytes) -> Option<Frame> {
    let mut rest = payload.clone();
    let tag = rest.split_to(1)[0];
    let revision = Revision(take_u64(&mut rest)?);
    match tag {
        PUT => {
            let mark = take_u64(&mut rest)?;
            let (table, key) = (take_text(&mut rest)?, take_text(&mut rest)?);
            Some(Frame::Put {
                revision,
                mark,
                table: Table::new(&table),
                key: Key::from_text(&key),
                body: rest,
            })
        }
        REMOVE => {
            let (table, key) = (take_text(&mut rest)?, take_text(&mut rest)?);
            Some(Frame::Remove { revision, table: Table::new(&table), key: Key::from_text(&key) })
        }
        CLEAR => Some(Frame::Clear { revision }),
        REACHED => Some(Frame::Reached { revision }),
        _ => None,
    }
}

fn take(rest: &mut Bytes, length: usize) -> Option<Bytes> {
    (rest.len() >= length).then(|| rest.split_to(length))
}

fn take_u64(rest: &mut Bytes) -> Option<u64> {
    take(rest, 8)?.as_ref().try_into().ok().map(u64::from_le_bytes)
}

fn take_text(rest: &mut Bytes) -> Option<String> {
    let length = take(rest, 2)?.as_ref().try_into().ok().map(u16::from_le_bytes)?;
    String::from_utf8(take(rest, length.into())?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file() -> Bytes {
        let (table, key) = (Table::new("pods"), Key::new("default", "p"));
        let mut out = header();
        put(&mut out, Revision(7), 9, &table, &key, b"{}");
        remove(&mut out, Revision(8), &table, &key);
        clear(&mut out, Revision(9));
        out.into()
    }

    fn read_all(file: &Bytes) -> (Vec<Frame>, Found) {
        let (mut frames, mut at) = (Vec::new(), HEADER_BYTES);
        loop {
            match read(file, at) {
                Found::Frame(frame, next) => {
                    frames.push(frame);
                    at = next;
                }
                end => return (frames, end),
            }
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let (frames, end) = read_all(&file());
        let (table, key) = (Table::new("pods"), Key::new("default", "p"));
        let body = Bytes::from_static(b"{}");
        let put = Frame::Put { revision: Revision(7), mark: 9, table: table.clone(), key: key.clone(), body };
        let remove = Frame::Remove { revision: Revision(8), table, key };
        assert_eq!(frames, [put, remove, Frame::Clear { revision: Revision(9) }]);
        assert_eq!(end, Found::End);
    }

    #[test]
    fn a_cut_file_loses_only_the_frame_that_was_cut() {
        let whole = file();
        let (all, _) = read_all(&whole);
        for length in HEADER_BYTES..whole.len() {
            let (frames, end) = read_all(&whole.slice(..length));
            assert_eq!(frames, all[..frames.len()]);
            assert!(matches!(end, Found::Torn | Found::End), "{length}: {end:?}");
        }
    }

    proptest! {
        #[test]
        fn a_flipped_bit_is_never_taken_for_another_frame(at in HEADER_BYTES..file().len(), bit in 0..8_u8) {
            let mut bytes = file().to_vec();
            bytes[at] ^= 1_u8 << bit;
            let (frames, end) = read_all(&bytes.into());
            let (all, _) = read_all(&file());
            prop_assert_eq!(&frames[..], &all[..frames.len()]);
            prop_assert_ne!(end, Found::End);
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let bytes = Bytes::from(bytes);
            for at in 0..=bytes.len() {
                let _ = read(&bytes, at);
            }
        }
    }
}
