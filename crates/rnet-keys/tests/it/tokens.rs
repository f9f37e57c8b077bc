//! Tokens of browsers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::{Duration, SystemTime};

use rnet_keys::{KeysFile, Role, add_token, remove_token};

use crate::{Folder, read, request, write_private};

#[test]
fn a_token_is_stored_as_a_hash_and_matches_its_secret_alone() {
    let folder = Folder::new();
    let path = folder.host("a").path().to_owned();
    let hour = Duration::from_secs(3600);
    let look = add_token(&path, "anna", Role::Look, None).unwrap();
    let drive = add_token(&path, "ben", Role::Drive, Some(SystemTime::now() + hour)).unwrap();
    let late = add_token(&path, "old", Role::Operate, Some(SystemTime::now() - hour)).unwrap();
    assert_eq!(look.len(), 43);
    let keys = KeysFile::load(&path).unwrap();
    let found = |secret: &str| {
        let found = keys.tokens().iter().find(|token| token.matches(secret));
        found.map(|token| (token.name.clone(), token.role))
    };
    assert_eq!(found(&look), Some(("anna".to_owned(), Role::Look)));
    assert_eq!(found(&drive), Some(("ben".to_owned(), Role::Drive)));
    // Expired.
    assert_eq!(found(&late), None);
    assert!(keys.tokens()[2].has_expired() && !keys.tokens()[1].has_expired());
    for wrong in ["", &look[1..], &format!("{look}a"), &look.to_lowercase(), "anna"] {
        assert_eq!(found(wrong), None, "{wrong}");
    }
    let text = read(&path);
    assert!(!text.contains(&look) && !format!("{:?}", keys.tokens()).contains(&look));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(Role::Look < Role::Operate && Role::Operate < Role::Drive);
}

#[test]
fn tokens_are_replaced_removed_and_kept_at_renewal() {
    let folder = Folder::new();
    let path = folder.host("a").path().to_owned();
    let old = add_token(&path, "anna", Role::Look, None).unwrap();
    let new = add_token(&path, "anna", Role::Drive, None).unwrap();
    add_token(&path, "ben", Role::Look, None).unwrap();
    remove_token(&path, "ben").unwrap();
    let why = remove_token(&path, "ben").unwrap_err().to_string();
    assert!(why.contains("no token ben"), "{why}");
    assert!(add_token(&path, "a b", Role::Look, None).is_err());
    // Renewal of the host.
    folder.authority().add_host(&request("a"), &path).unwrap();
    let keys = KeysFile::load(&path).unwrap();
    let [token] = keys.tokens() else { panic!("{:?}", keys.tokens()) };
    assert!(token.matches(&new) && !token.matches(&old) && token.role == Role::Drive);
}

#[test]
fn tokens_added_at_the_same_time_are_all_kept() {
    let folder = Folder::new();
    let path = folder.host("a").path().to_owned();
    thread::scope(|scope| {
        for n in 0..8 {
            let path = &path;
            scope.spawn(move || add_token(path, &format!("t{n}"), Role::Look, None).unwrap());
        }
    });
    assert_eq!(KeysFile::load(&path).unwrap().tokens().len(), 8);
}

#[test]
fn a_damaged_token_is_an_error_that_quotes_nothing() {
    let folder = Folder::new();
    let path = folder.host("a").path().to_owned();
    let text = read(&path);
    // {"name":"a","role":"king","sha256":"secret"}
    let block = "eyJuYW1lIjoiYSIsInJvbGUiOiJraW5nIiwic2hhMjU2Ijoic2VjcmV0In0=";
    write_private(
        &path,
        &format!("{text}-----BEGIN RNET TOKEN-----\n{block}\n-----END RNET TOKEN-----\n"),
    );
    let why = KeysFile::load(&path).unwrap_err().to_string();
    assert!(why.contains("token") && !why.contains("king") && !why.contains("secret"), "{why}");
}
