//! Keys files that are refused, and what the errors say.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use rnet_keys::{Authority, KeyError, KeysFile};

use crate::{Folder, read, request, write_private};

#[test]
fn a_file_that_others_may_open_is_refused() {
    let folder = Folder::new();
    let path = folder.host("a").path().to_owned();
    for mode in [0o640, 0o604, 0o620, 0o602, 0o666, 0o601] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let why = KeysFile::load(&path).unwrap_err();
        assert!(matches!(why, KeyError::Mode { .. }), "{mode:o}: {why}");
        let why = why.to_string();
        assert!(why.contains(&format!("chmod 600 {}", path.display())), "{why}");
        assert!(why.contains(&format!("mode {mode:04o}")), "{why}");
    }
    for mode in [0o400, 0o600] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        KeysFile::load(&path).unwrap();
    }
}

#[test]
fn a_file_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = Folder::new();
    let path = folder.host("a").path().to_owned();
    chown(&path, Some(4711), None).unwrap();
    let why = KeysFile::load(&path).unwrap_err().to_string();
    assert!(why.contains("belongs to user 4711") && why.contains("sudo chown 0"), "{why}");
    let key = folder.path("authority/authority.key");
    chown(&key, Some(4711), None).unwrap();
    assert!(matches!(Authority::open(&folder.path("authority")), Err(KeyError::Owner { .. })));
}

#[test]
fn what_is_not_a_file_is_refused() {
    let folder = Folder::new();
    let fifo = folder.path("fifo");
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    );
    made.unwrap();
    let large = folder.path("large");
    write_private(&large, &"a".repeat((4 << 20) + 1));
    let binary = folder.path("binary");
    fs::write(&binary, [0xff; 100]).unwrap();
    fs::set_permissions(&binary, Permissions::from_mode(0o600)).unwrap();
    for (path, word) in [
        (folder.path("none"), "cannot open"),
        (fifo, "not a file"),
        (folder.0.clone(), "not a file"),
        (large, "longer than"),
        (binary, "not text"),
    ] {
        let why = KeysFile::load(&path).unwrap_err().to_string();
        assert!(why.contains(word) && why.contains(&path.display().to_string()), "{why}");
    }
}

#[test]
fn wrong_contents_are_named() {
    let folder = Folder::new();
    let (a, b) = (folder.host("a"), folder.host("b"));
    let foreign = Folder::new().host("c");
    let authority = a.authority_pem();
    let path = folder.path("x.pem");
    let crl = folder.authority().revoke("b").map(|list| list.der().to_vec()).unwrap();
    assert!(a.verify_revocations(&crl).is_ok());
    for (text, word) in [
        (String::new(), "two certificates"),
        (format!("{}{}", a.certificate_pem(), a.key_pem()), "two certificates"),
        (format!("{}{authority}", a.certificate_pem()), "one private key"),
        (
            format!("{}{}{authority}", a.certificate_pem(), b.key_pem()),
            "does not belong to its certificate",
        ),
        (
            format!("{}{}{authority}", foreign.certificate_pem(), foreign.key_pem()),
            "host c is not from authority",
        ),
        (
            format!("{authority}{}{}", a.key_pem(), a.certificate_pem()),
            "second certificate is not an authority's",
        ),
        (read(a.path()).replace("-----END PRIVATE KEY-----", ""), "damaged"),
        (read(a.path())[..700].to_owned(), "damaged"),
    ] {
        write_private(&path, &text);
        let why = KeysFile::load(&path).unwrap_err().to_string();
        assert!(why.contains(word), "{word}: {why}");
    }
    // Text around the blocks is allowed.
    write_private(&path, &format!("Host a\n{}end\n", read(a.path())));
    assert_eq!(KeysFile::load(&path).unwrap().certificate().serial, a.certificate().serial);
}

#[test]
fn debug_text_has_no_key() {
    let folder = Folder::new();
    let keys = folder.host("a");
    let text = format!("{keys:?}");
    let key = keys.key_pem().lines().nth(1).unwrap();
    assert!(text.contains("host a") && !text.contains(key), "{text}");
}

/// A killed command leaves the folder at any of its steps; the next command completes it.
#[test]
fn an_interrupted_change_is_completed_by_the_next() {
    let folder = Folder::new();
    let authority = folder.path("authority");
    // `init` before the certificate was written.
    fs::create_dir(&authority).unwrap();
    fs::set_permissions(&authority, Permissions::from_mode(0o700)).unwrap();
    write_private(&authority.join("authority.key"), "half");
    write_private(&authority.join(".authority.pem.new"), "half");
    assert!(Authority::open(&authority).unwrap().is_none());
    assert!(Authority::init(&authority).unwrap().1);
    let first = folder.host("a");
    // `add-host` of a known host after its revocation, and before the record or the file was written.
    folder.authority().revoke("a").unwrap();
    write_private(&authority.join("hosts/.a.pem.new"), "half");
    write_private(&folder.path(".a.keys.pem.new"), "half");
    let second = folder.host("a");
    let list = second.revocations().unwrap();
    assert!(list.contains(first.certificate()) && !list.contains(second.certificate()));
    // After the record, before the file: the recorded certificate, whose key is lost, is revoked.
    let lost = folder.path("lost/keys.pem");
    fs::write(folder.path("lost"), "a file where a folder should be").unwrap();
    assert!(folder.authority().add_host(&request("a"), &lost).is_err());
    let recorded = folder.authority().hosts().unwrap().remove(0);
    assert_ne!(recorded.serial, second.certificate().serial);
    let third = folder.host("a");
    let list = third.revocations().unwrap();
    assert!(list.contains(&recorded) && list.contains(second.certificate()));
    assert!(!list.contains(third.certificate()));
    let names = fs::read_dir(authority.join("hosts")).unwrap().map(|e| e.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["a.pem"]);
    // The certificate of the authority was lost: a new one would forget the hosts.
    fs::remove_file(authority.join("authority.pem")).unwrap();
    let why = Authority::init(&authority).err().unwrap().to_string();
    assert!(why.contains("authority.pem") && why.contains("rnet keys export"), "{why}");
    fs::write(authority.join("authority.pem"), third.authority_pem()).unwrap();
    assert!(!Authority::init(&authority).unwrap().1);
}

#[test]
fn a_planted_link_is_not_followed() {
    let folder = Folder::new();
    let victim = folder.path("victim");
    fs::write(&victim, "mine").unwrap();
    symlink(&victim, folder.path(".a.keys.pem.new")).unwrap();
    folder.host("a");
    assert_eq!(read(&victim), "mine");
}
