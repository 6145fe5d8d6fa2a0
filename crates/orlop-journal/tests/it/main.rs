//! What was acknowledged comes back, what is damaged is refused and left as it was.

use bytes::Bytes;
use orlop_journal::{Disk, Keep, OpenError};
use orlop_store::{Backup, Change, Expect, Journal as _, Key, Limits, Revision, Store, Table};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
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

type Disks = Arc<Disk<Mark>>;
type Contents = BTreeMap<(String, String), (Revision, u64, Bytes)>;

fn open(directory: &Path) -> Result<(Disks, Arc<Store<Mark>>), OpenError> {
    let (disk, state) = Disk::open(directory)?;
    let disk = Arc::new(disk);
    let store = Store::with_journal(Limits::default(), &state, disk.clone());
    Ok((disk, Arc::new(store)))
}

fn contents(state: &Backup<Mark>) -> Contents {
    let entry = |(table, entry): (&Table, &Arc<orlop_store::Entry<Mark>>)| {
        let place = (table.as_str().to_owned(), entry.key.as_str().to_owned());
        (place, (entry.revision, entry.header.0, entry.body.clone()))
    };
    state.iter().map(entry).collect()
}

/// One thing that happens to a store.
#[derive(Clone, Debug)]
enum Step {
    Put(u8, u8, u8),
    Remove(u8, u8),
    Shorten,
    Replace,
    Refill(u8),
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..2_u8, 0..6_u8, any::<u8>()).prop_map(|(t, k, v)| Step::Put(t, k, v)),
        3 => (0..2_u8, 0..6_u8).prop_map(|(t, k)| Step::Remove(t, k)),
        1 => Just(Step::Shorten),
        1 => Just(Step::Replace),
        1 => any::<u8>().prop_map(Step::Refill),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 0..40)
}

fn place(table: u8, key: u8) -> (Table, Key) {
    (Table::new(&format!("t{table}")), Key::new("ns", &format!("k{key}")))
}

fn run(disk: &Disks, store: &Store<Mark>, earlier: &mut Option<Backup<Mark>>, step: &Step) {
    match step {
        Step::Put(table, key, value) => {
            let (table, key) = place(*table, *key);
            let expect = store.get(&table, &key).map_or(Expect::Absent, |entry| Expect::At(entry.revision));
            let change = |revision: Revision| {
                let body = format!("{value} at {revision}").into();
                Change::Put { body, header: Mark(value.wrapping_add(1).into()) }
            };
            store.commit(&table, &key, expect, 0, change).expect("nobody else writes");
            *earlier = earlier.take().or_else(|| Some(store.backup()));
        }
        Step::Remove(table, key) => {
            let (table, key) = place(*table, *key);
            if let Some(entry) = store.get(&table, &key) {
                let last = |_| Change::Delete { body: entry.body.clone(), header: Mark(0) };
                store.commit(&table, &key, Expect::At(entry.revision), 0, last).expect("nobody else writes");
            }
        }
        Step::Shorten => {
            // A journal that is being shortened is not asked again.
            disk.shorten(store.backup());
        }
        Step::Replace => {
            if let Some(state) = earlier {
                store.restore(state).expect("the disk works");
            }
        }
        Step::Refill(count) => {
            let objects = (0..count % 4).map(|n| {
                let (table, key) = place(0, n);
                (table, key, move |revision: Revision| (format!("new {revision}").into(), Mark(n.into())))
            });
            store.refill(objects).expect("the disk works");
        }
        Step::Restart => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_was_written_comes_back(steps in steps()) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (mut disk, mut store) = open(directory.path()).expect("a new directory");
        let mut earlier = None;
        for step in &steps {
            run(&disk, &store, &mut earlier, step);
            if matches!(step, Step::Restart) {
                let before = store.backup();
                drop((disk, store));
                (disk, store) = open(directory.path()).expect("it was closed");
                prop_assert_eq!(contents(&store.backup()), contents(&before));
                prop_assert!(store.revision() > before.revision, "no revision is given twice");
            }
        }
        let before = contents(&store.backup());
        drop((disk, store));
        let (_disk, store) = open(directory.path()).expect("it was closed");
        prop_assert_eq!(contents(&store.backup()), before);
    }
}

fn write(store: &Store<Mark>, key: u8, text: &'static str) {
    let (table, key) = place(0, key);
    let change = |_| Change::Put { body: text.into(), header: Mark(0) };
    store.commit(&table, &key, Expect::Absent, 0, change).expect("nobody else writes");
}

fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(directory).expect("the directory is there");
    entries
        .map(|entry| entry.expect("an entry").path())
        .map(|path| (path.display().to_string(), std::fs::read(&path).expect("a file")))
        .collect()
}

/// A directory with one file that holds three objects.
fn filled() -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (disk, store) = open(directory.path()).expect("a new directory");
    for key in 0..3 {
        write(&store, key, "some text");
    }
    drop((disk, store));
    let journal = files(directory.path()).into_keys().find(|name| name.ends_with(".journal"));
    (directory, journal.expect("there is a journal").into())
}

#[tokio::test]
async fn a_change_settles() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (disk, store) = open(directory.path()).expect("a new directory");
    for key in 0..100 {
        write(&store, key, "x");
        if key % 10 == 0 {
            disk.settled(store.revision()).await.expect("the disk works");
        }
    }
    disk.settled(store.revision()).await.expect("the disk works");
}

#[test]
fn a_file_that_was_cut_keeps_all_before_the_cut() {
    let (directory, journal) = filled();
    let whole = std::fs::read(&journal).expect("a file");
    let mut found = Vec::new();
    for length in 0..=whole.len() {
        let copy = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(copy.path().join("0000000001.journal"), &whole[..length]).expect("it can be written");
        let (_disk, store) = open(copy.path()).expect("a cut file is what a crash leaves");
        found.push(store.snapshot(&Table::new("t0")).len());
    }
    assert!(found.is_sorted(), "{found:?}");
    assert_eq!((found[0], found[whole.len() - 1], found[whole.len()]), (0, 2, 3));
    assert_eq!(found.iter().filter(|count| **count == 3).count(), 1);
    drop(directory);
}

#[test]
fn damage_is_refused_and_left_as_it_was() {
    let (_directory, journal) = filled();
    let whole = std::fs::read(&journal).expect("a file");
    let mut refused = 0;
    for at in 0..whole.len() {
        let copy = tempfile::tempdir().expect("a temporary directory");
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        std::fs::write(copy.path().join("0000000001.journal"), &damaged).expect("it can be written");
        match Disk::<Mark>::open(copy.path()) {
            Err(error) => {
                refused += 1;
                let mut left = files(copy.path());
                left.retain(|name, _| !name.ends_with("lock"));
                assert_eq!(left.into_values().collect::<Vec<_>>(), [damaged], "{error}");
            }
            // The last frame may look as if it had been cut off.
            Ok((_disk, state)) => assert_eq!(contents(&state).len(), 2, "byte {at}"),
        }
    }
    assert!(refused > whole.len() * 9 / 10, "{refused} of {}", whole.len());
}

#[test]
fn what_is_not_ours_is_named() {
    let refusal = |bytes: &[u8]| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(directory.path().join("7.journal"), bytes).expect("it can be written");
        Disk::<Mark>::open(directory.path()).err().expect("it is refused").to_string()
    };
    assert!(refusal(b"something else entirely").ends_with("7.journal` is not a journal of orlop"));
    let newer = refusal(b"orlop-journal\n\x07\x00");
    assert!(newer.ends_with("has format 7, and this version of orlop reads formats up to 1"), "{newer}");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (disk, store) = open(directory.path()).expect("a new directory");
    let second = Disk::<Mark>::open(directory.path()).err().expect("it is refused").to_string();
    assert!(second.ends_with("is in use by another process"), "{second}");
    write(&store, 0, "not an object");
    drop((disk, store));
    let object = Disk::<Mark>::open(directory.path()).err().expect("it is refused").to_string();
    assert!(object.ends_with("holds an object that cannot be read: `ns/k0` of `t0`"), "{object}");
}

#[test]
fn a_journal_does_not_grow_for_ever() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (disk, store) = open(directory.path()).expect("a new directory");
    let (table, key) = place(0, 0);
    let body = Bytes::from(vec![b'x'; 1 << 20]);
    for _ in 0..100 {
        let expect = store.get(&table, &key).map_or(Expect::Absent, |entry| Expect::At(entry.revision));
        let change = |_| Change::Put { body: body.clone(), header: Mark(0) };
        store.commit(&table, &key, expect, 0, change).expect("nobody else writes");
    }
    let revision = store.get(&table, &key).expect("it is there").revision;
    drop((disk, store));
    let (disk, store) = open(directory.path()).expect("it was closed");
    assert_eq!(store.get(&table, &key).expect("it is there").revision, revision);
    drop((disk, store));
    let bytes: usize = files(directory.path()).into_values().map(|file| file.len()).sum();
    assert!(bytes < 2 << 20, "{bytes} bytes are left of a hundred megabytes");
}
