//! The promises of the store, checked over random histories.

use bytes::Bytes;
use orlop_store::{
    Change, Compacted, Event, EventKind, Expect, Key, Limits, ReadAtError, Revision, Store, Table,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One step of a random history: which table, which key, and what is attempted.
#[derive(Clone, Debug)]
enum Step {
    Create(u8, u8),
    Update(u8, u8),
    Delete(u8, u8),
    StaleUpdate(u8, u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let one = (0_u8..4, 0_u8..2, 0_u8..5).prop_map(|(what, table, key)| match what {
        0 => Step::Create(table, key),
        1 => Step::Update(table, key),
        2 => Step::Delete(table, key),
        _ => Step::StaleUpdate(table, key),
    });
    proptest::collection::vec(one, 0..60)
}

fn table(n: u8) -> Table {
    Table::new(&format!("t{n}"))
}

fn key(n: u8) -> Key {
    Key::new("ns", &format!("k{n}"))
}

fn put(text: String) -> Change<()> {
    Change::Put { body: Bytes::from(text), header: () }
}

/// Runs one step; says whether it was committed.
fn run(store: &Arc<Store<()>>, step: &Step, now_ms: i64) -> bool {
    let at = |t: u8, k: u8| {
        store.get(&table(t), &key(k)).map_or(Expect::At(Revision(0)), |e| Expect::At(e.revision))
    };
    match step {
        Step::Create(t, k) => store
            .commit(&table(*t), &key(*k), Expect::Absent, now_ms, |rev| put(format!("new {rev}")))
            .is_ok(),
        Step::Update(t, k) => {
            store.commit(&table(*t), &key(*k), at(*t, *k), now_ms, |rev| put(format!("set {rev}"))).is_ok()
        }
        Step::Delete(t, k) => store
            .commit(&table(*t), &key(*k), at(*t, *k), now_ms, |rev| Change::Delete {
                body: Bytes::from(format!("end {rev}")),
                header: (),
            })
            .is_ok(),
        Step::StaleUpdate(t, k) => store
            .commit(&table(*t), &key(*k), Expect::At(Revision(0)), now_ms, |rev| put(format!("bad {rev}")))
            .is_ok(),
    }
}

fn state(store: &Arc<Store<()>>, of: &Table) -> BTreeMap<String, Bytes> {
    let snapshot = store.snapshot(of);
    snapshot.within("", &Key::from_text("")).map(|e| (e.key.as_str().to_owned(), e.body.clone())).collect()
}

fn replay(into: &mut BTreeMap<String, Bytes>, event: &Event<()>) {
    let key = event.entry.key.as_str().to_owned();
    match event.kind {
        EventKind::Deleted => into.remove(&key),
        _ => into.insert(key, event.entry.body.clone()),
    };
}

fn drain(watch: &mut orlop_store::Watch<()>) -> Vec<Arc<Event<()>>> {
    let mut all = Vec::new();
    while let Some(event) = watch.try_next().expect("history is not compacted in this test") {
        all.push(event);
    }
    all
}

proptest! {
    #[test]
    fn a_rejected_write_leaves_the_revision_unchanged(history in steps()) {
        let store = Arc::new(Store::new(Limits::default()));
        for step in &history {
            let before = (store.revision(), state(&store, &table(0)), state(&store, &table(1)));
            if run(&store, step, 0) {
                prop_assert_eq!(store.revision(), Revision(before.0.0 + 1));
            } else {
                prop_assert_eq!((store.revision(), state(&store, &table(0)), state(&store, &table(1))), before);
            }
        }
    }

    #[test]
    fn a_watch_is_ordered_unique_and_reliable(history in steps()) {
        let store = Arc::new(Store::new(Limits::default()));
        let mut watch = store.watch(&table(0), store.revision()).expect("nothing is compacted");
        let mut seen = BTreeMap::new();
        let mut last = Revision(0);
        let mut committed = 0;
        for step in &history {
            let mine = matches!(step, Step::Create(0, _) | Step::Update(0, _) | Step::Delete(0, _));
            committed += usize::from(run(&store, step, 0) && mine);
        }
        let events = drain(&mut watch);
        prop_assert_eq!(events.len(), committed);
        for event in events {
            prop_assert!(event.revision() > last);
            last = event.revision();
            replay(&mut seen, &event);
        }
        prop_assert_eq!(seen, state(&store, &table(0)));
    }

    #[test]
    fn a_watch_is_resumable_from_any_revision_and_bookmark(history in steps(), cut in 0_usize..60) {
        let store = Arc::new(Store::new(Limits::default()));
        let mut watch = store.watch(&table(0), store.revision()).expect("nothing is compacted");
        let (before, after) = history.split_at(cut.min(history.len()));
        for step in before { run(&store, step, 0); }
        let mut seen = BTreeMap::new();
        for event in drain(&mut watch) { replay(&mut seen, &event); }
        let bookmark = watch.bookmark().expect("not compacted").expect("everything was drained");
        for step in after { run(&store, step, 0); }
        let mut resumed = store.watch(&table(0), bookmark).expect("nothing is compacted");
        let (mut a, mut b) = (seen.clone(), seen);
        for event in drain(&mut watch) { replay(&mut a, &event); }
        for event in drain(&mut resumed) { replay(&mut b, &event); }
        prop_assert_eq!(&a, &b);
        prop_assert_eq!(a, state(&store, &table(0)));
    }

    #[test]
    fn a_list_at_a_past_revision_is_what_was_there(history in steps()) {
        let store = Arc::new(Store::new(Limits::default()));
        let mut past = vec![(store.revision(), state(&store, &table(0)))];
        for step in &history {
            run(&store, step, 0);
            past.push((store.revision(), state(&store, &table(0))));
        }
        for (revision, expected) in past {
            let snapshot = store.snapshot_at(&table(0), revision).expect("nothing is compacted");
            let found: BTreeMap<_, _> = snapshot.within("", &Key::from_text(""))
                .map(|e| (e.key.as_str().to_owned(), e.body.clone())).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn compaction_refuses_the_past_and_never_skips(history in steps(), events_max in 0_usize..6) {
        let store = Arc::new(Store::new(Limits { history_ms: i64::MAX, events_max }));
        let mut watch = store.watch(&table(0), store.revision()).expect("nothing is compacted");
        let mut seen = state(&store, &table(0));
        let mut cut_off = false;
        for (n, step) in history.iter().enumerate() {
            run(&store, step, 0);
            if n % 3 == 0 {
                loop {
                    match watch.try_next() {
                        Ok(Some(event)) => replay(&mut seen, &event),
                        Ok(None) => break,
                        Err(Compacted { .. }) => { cut_off = true; break }
                    }
                }
                if cut_off { break }
                prop_assert_eq!(&seen, &state(&store, &table(0)));
            }
        }
        if cut_off {
            prop_assert!(store.watch(&table(0), Revision(1)).is_err());
            let is_compacted = matches!(store.snapshot_at(&table(0), Revision(1)), Err(ReadAtError::Compacted(_)));
            prop_assert!(is_compacted);
        }
    }

    #[test]
    fn a_backup_restores_all_tables(before in steps(), after in steps()) {
        let store = Arc::new(Store::new(Limits::default()));
        for step in &before { run(&store, step, 0); }
        let expected = (state(&store, &table(0)), state(&store, &table(1)));
        let backup = store.backup();
        for step in &after { run(&store, step, 0); }
        let mut watch = store.watch(&table(0), store.revision()).expect("nothing is compacted");
        let revision = store.revision();
        store.restore(&backup).expect("there is no journal");
        prop_assert_eq!((state(&store, &table(0)), state(&store, &table(1))), expected);
        prop_assert!(store.revision() > revision);
        prop_assert!(watch.try_next().is_err());
    }
}

#[test]
fn history_ends_after_its_time() {
    let store = Arc::new(Store::new(Limits { history_ms: 75_000, events_max: 100 }));
    run(&store, &Step::Create(0, 1), 0);
    run(&store, &Step::Update(0, 1), 75_000);
    assert!(store.watch(&table(0), Revision(1)).is_ok());
    // Writes to another table look through this one's history too.
    run(&store, &Step::Create(1, 1), 75_001);
    run(&store, &Step::Update(1, 1), 75_001);
    assert_eq!(store.watch(&table(0), Revision(1)).err(), Some(Compacted { oldest: Revision(2) }));
    assert!(store.watch(&table(0), Revision(2)).is_ok());
}

#[test]
fn a_future_revision_is_refused() {
    let store: Arc<Store<()>> = Arc::new(Store::new(Limits::default()));
    let result = store.snapshot_at(&table(0), Revision(99));
    assert_eq!(result.err(), Some(ReadAtError::Future { current: Revision(1) }));
}

#[test]
fn a_watch_of_the_future_waits_for_it() {
    let store = Arc::new(Store::new(Limits::default()));
    let mut watch = store.watch(&table(0), Revision(3)).expect("the future is not compacted");
    assert_eq!(watch.bookmark(), Ok(None), "a bookmark never goes back");
    for n in 1..4 {
        run(&store, &Step::Create(0, n), 0);
    }
    let first = watch.try_next().expect("not compacted").expect("the write after revision 3");
    assert_eq!(first.revision(), Revision(4));
    assert_eq!(watch.bookmark(), Ok(Some(Revision(4))));
}

#[test]
fn a_refill_replaces_everything_at_once() {
    let store = Arc::new(Store::new(Limits::default()));
    run(&store, &Step::Create(0, 1), 0);
    let mut watch = store.watch(&table(0), store.revision()).expect("nothing is compacted");
    let object = |n: u8| (table(1), key(n), move |revision: Revision| (format!("{n}@{revision}").into(), ()));
    store.refill([object(1), object(2), object(1)]).expect("there is no journal");
    assert!(store.snapshot(&table(0)).is_empty());
    let bodies: Vec<_> = store.snapshot(&table(1)).iter().map(|entry| entry.body.clone()).collect();
    assert_eq!(bodies, ["1@5", "2@4"]);
    assert_eq!(store.revision(), Revision(6));
    assert!(watch.try_next().is_err());
}

#[tokio::test]
async fn a_waiting_watch_wakes_for_its_table_only() {
    let store = Arc::new(Store::new(Limits::default()));
    let mut watch = store.watch(&table(0), store.revision()).expect("nothing is compacted");
    run(&store, &Step::Create(1, 1), 0);
    let wait = async { watch.next().await.expect("not compacted").entry.key.clone() };
    let write = async {
        tokio::task::yield_now().await;
        run(&store, &Step::Create(0, 3), 0);
    };
    let (woken, ()) = tokio::join!(wait, write);
    assert_eq!(woken, key(3));
}
