//! Stores that are damaged, have another version, or are read-only.

use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;

use rnet_core::Error;

use super::super::engine::Engine;
use super::super::store::read_only;
use super::*;

/// A case with different expectations.
const OTHERS: &str = "another database";

/// Creates a closed store with this many keys; returns its path.
fn filled(place: &TestFolder, keys: u64) -> PathBuf {
    let mut store = acquire(&mut candidate(place, 1));
    for i in 0..keys {
        let value = vec![i as u8; 500];
        store.commit(&[set(&format!("/k{i}"), &value, i + 1)], i + 1).unwrap();
    }
    place.store()
}

/// Opens a damaged store, and checks that it was set aside unchanged.
#[track_caller]
fn set_aside(what: &str, spoil: impl FnOnce(&PathBuf)) {
    let place = TestFolder::new();
    let path = filled(&place, 40);
    spoil(&path);
    let damaged = std::fs::read(&path).unwrap();
    let mut again = candidate(&place, 2);
    let mut store = acquire(&mut again);
    let reports = again.take_reports();
    let [report] = &reports[..] else { panic!("{what}: {reports:?}") };
    assert!(report.moved_to.to_str().unwrap().contains(".redb.damaged-"), "{what}: {report:?}");
    // A valid database of another program is opened, which writes to it, before it is recognized.
    if what != OTHERS {
        assert_eq!(std::fs::read(&report.moved_to).unwrap().len(), damaged.len(), "{what}");
    }
    assert!(!report.why.is_empty(), "{what}");
    assert_eq!(contents_of(&store), (Model::new(), 0), "{what}");
    store.commit(&[set("/new", b"v", 1)], 1).unwrap();
    drop(store);
    // The file does not affect the next start, and stays.
    let mut third = candidate(&place, 3);
    assert_eq!(contents_of(&acquire(&mut third)).0.len(), 1, "{what}");
    assert_eq!(third.take_reports(), [], "{what}");
    assert!(report.moved_to.exists(), "{what}");
}

#[test]
fn damaged_store_is_set_aside_and_replaced() {
    let write = |path: &PathBuf, at: u64, bytes: &[u8]| {
        std::fs::OpenOptions::new().write(true).open(path).unwrap().write_at(bytes, at).unwrap();
    };
    let cut = |path: &PathBuf, len: u64| {
        std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(len).unwrap();
    };
    set_aside("wrong magic", |path| write(path, 0, b"nothing"));
    set_aside("empty", |path| cut(path, 0));
    set_aside("shorter than a header", |path| cut(path, 100));
    set_aside("cut in the middle", |path| cut(path, 3 * 4096));
    set_aside("no database", |path| std::fs::write(path, vec![0x5a; 70_000]).unwrap());
    set_aside("zeros", |path| std::fs::write(path, vec![0; 70_000]).unwrap());
    set_aside(OTHERS, |path| {
        std::fs::remove_file(path).unwrap();
        drop(redb::Database::create(path).unwrap());
    });
    // A changed value, found by its text wherever redb has put it.
    set_aside("a turned bit in each copy of a value", |path| {
        let image = std::fs::read(path).unwrap();
        let wanted = [33u8; 500];
        let at = image.windows(500).enumerate().filter(|(_, window)| *window == wanted);
        let at: Vec<_> = at.map(|(at, _)| at as u64).collect();
        assert!(!at.is_empty());
        at.iter().for_each(|at| write(path, *at + 250, &[34]));
    });
}

/// Arbitrary bytes: no panic or hang, and the resulting store works.
#[test]
fn corrupt_store_does_not_crash_the_process() {
    let place = TestFolder::new();
    let image = std::fs::read(filled(&place, 60)).unwrap();
    let mut rng = TestRng(11);
    let (mut refused, mut opened) = (0, 0);
    for _ in 0..400 {
        let mut image = image.clone();
        for _ in 0..=rng.next(3) {
            // Changes of the headers and the first pages have most effect.
            let near = [640, 16 << 10, image.len() as u64][rng.next(3) as usize];
            let at = rng.next(near) as usize;
            let len = (1 + rng.next(64) as usize).min(image.len() - at);
            let value = rng.next(256) as u8;
            image[at..at + len].fill(value);
        }
        match Engine::open(disk::Disk::of(image)) {
            Ok(mut engine) => {
                opened += 1;
                contents_of_engine(&engine);
                engine.commit(&[set("/a", b"b", 1000)], 1000).unwrap();
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 50 && opened > 50, "{refused} refused, {opened} opened");
}

#[test]
fn second_damaged_store_in_the_same_second_gets_another_name() {
    let place = TestFolder::new();
    let mut seen = Vec::new();
    for i in 0..3u8 {
        let path = filled(&place, 1);
        std::fs::write(&path, [i; 3]).unwrap();
        let mut again = candidate(&place, 1);
        drop(acquire(&mut again));
        seen.push(again.take_reports()[0].moved_to.clone());
    }
    for (i, path) in seen.iter().enumerate() {
        assert_eq!(std::fs::read(path).unwrap(), [i as u8; 3]);
    }
    // The same number twice in one second: the names differ only in their suffix.
    let folder = place.folder();
    for attempt in 0..3 {
        let from = folder.path().join("x");
        std::fs::write(&from, b"x").unwrap();
        let to = folder.set_aside(&from, 900, 5).unwrap();
        let end =
            if attempt == 0 { "damaged-5".to_owned() } else { format!("damaged-5-{attempt}") };
        assert!(to.to_str().unwrap().ends_with(&end), "{to:?}");
    }
}

#[test]
fn store_of_a_newer_version_is_unchanged() {
    let place = TestFolder::new();
    let path = filled(&place, 1);
    {
        let table = redb::TableDefinition::<&str, u64>::new("meta");
        let db = redb::Database::open(&path).unwrap();
        let write = db.begin_write().unwrap();
        write.open_table(table).unwrap().insert("format", 99).unwrap();
        write.commit().unwrap();
    }
    let mut again = candidate(&place, 1);
    let error = again.take().unwrap_err();
    assert!(
        matches!(&error, Error::Storage { why, .. } if why.contains("newer robot-net")),
        "{error}"
    );
    assert_eq!(again.take_reports(), []);
    let names = place.names();
    assert!(names.len() == 1 && names[0].ends_with(".redb"), "{names:?}");
}

#[test]
fn a_folder_that_others_may_enter_is_refused() {
    let place = TestFolder::new();
    std::fs::create_dir(place.folder().path()).unwrap();
    let mode = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(place.folder().path(), mode).unwrap();
    };
    mode(0o750);
    let error = candidate(&place, 1).take().unwrap_err();
    assert!(error.to_string().contains("chmod 700"), "{error}");
    mode(0o700);
    acquire(&mut candidate(&place, 1));
    assert!(std::fs::metadata(place.folder().path()).unwrap().permissions().mode() & 0o077 == 0);
    let store = place.folder().path().join(&place.names()[0]);
    assert_eq!(std::fs::metadata(store).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn read_only_store_is_read() {
    let place = TestFolder::new();
    assert_eq!(
        read_only(&place.folder(), &Clock::system(), &mut |_| {}).unwrap(),
        None,
        "without a folder"
    );
    let path = filled(&place, 5);
    let before = std::fs::read(&path).unwrap();
    let mut model = Model::new();
    let revision =
        read_only(&place.folder(), &Clock::system(), &mut |saved| add_to(&mut model, saved))
            .unwrap();
    assert_eq!((revision, model.len()), (Some(5), 5));
    assert!(before == std::fs::read(&path).unwrap(), "it was only read");
    // Also while it is open, when it is not cleanly closed.
    let mut store = acquire(&mut candidate(&place, 1));
    store.commit(&[set("/k9", b"v", 6)], 6).unwrap();
    model.clear();
    let revision =
        read_only(&place.folder(), &Clock::system(), &mut |saved| add_to(&mut model, saved))
            .unwrap();
    assert_eq!((revision, model.len()), (Some(6), 6));
}
