//! The authority issues, replaces and revokes.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use rnet_keys::{Authority, EXPIRY_WARNING, HostRequest, KeysFile, Right, Rights};
use x509_parser::extensions::GeneralName;

use crate::{Folder, certificate_der, request, rights};

#[test]
fn rights_are_read_back_as_they_were_given() {
    let folder = Folder::new();
    let given = rights(&[
        (Right::Publish, "/arm/**"),
        (Right::Publish, "/log"),
        (Right::Call, "/arm/*/home"),
        (Right::Read, "/maps/floor-2:v1.0/**"),
        (Right::Write, "/**"),
    ]);
    let wanted = HostRequest {
        rights: given.clone(),
        addresses: vec!["192.168.1.5".parse::<IpAddr>().unwrap(), "::1".parse().unwrap()],
        days: 10,
        ..request("arm-1")
    };
    let path = folder.path("arm-1.keys.pem");
    let issued = folder.authority().add_host(&wanted, &path).unwrap();
    let keys = KeysFile::load(&path).unwrap();
    let found = keys.certificate();
    assert_eq!((&found.rights, &found.name, &found.serial), (&given, &wanted.name, &issued.serial));
    assert!(given.allows(Right::Publish, "/arm/left/joint") && !given.allows(Right::Drive, "/arm"));
    assert!(!given.allows(Right::Subscribe, "/log") && given.allows(Right::Write, "/x"));
    let left = found.expires_in().unwrap();
    assert!(left <= Duration::from_secs(10 * 86400) && left < EXPIRY_WARNING);
    assert!(found.not_before <= SystemTime::now() - Duration::from_secs(299));
    // As other programs see them.
    let der = certificate_der(keys.certificate_pem());
    let (_, parsed) = x509_parser::parse_x509_certificate(&der).unwrap();
    let names = parsed.subject_alternative_name().unwrap().unwrap();
    let text: Vec<String> = names
        .value
        .general_names
        .iter()
        .map(|name| match name {
            GeneralName::URI(uri) | GeneralName::DNSName(uri) => (*uri).to_owned(),
            GeneralName::IPAddress(bytes) => format!("{bytes:?}"),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(text[..4], ["arm-1", "arm-1.local", "localhost", "[192, 168, 1, 5]"]);
    assert_eq!(
        text[5..],
        [
            "rnet:publish:/arm/**",
            "rnet:publish:/log",
            "rnet:call:/arm/*/home",
            "rnet:read:/maps/floor-2:v1.0/**",
            "rnet:write:/**",
        ]
    );
    let usage = parsed.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.server_auth && usage.client_auth);
}

#[test]
fn without_given_rights_everything_is_allowed() {
    let keys = Folder::new().host("a");
    assert_eq!(keys.certificate().rights, Rights::all());
    for right in Right::ALL {
        assert!(Rights::all().allows(right, "/_rnet/logs") && Rights::all().allows(right, "/a/b"));
        assert!(!Rights::default().allows(right, "/a"));
    }
}

#[test]
fn files_are_private_and_open_ones_are_refused() {
    let folder = Folder::new();
    drop(folder.host("a"));
    let mode = |name: &str| fs::metadata(folder.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("authority"), 0o700);
    assert_eq!(mode("authority/authority.key"), 0o600);
    assert_eq!(mode("a.keys.pem"), 0o600);
    for (name, open, right) in
        [("authority/authority.key", 0o644, 0o600), ("authority", 0o755, 0o700)]
    {
        let path = folder.path(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(open)).unwrap();
        let why = Authority::open(&folder.path("authority")).err().unwrap().to_string();
        assert!(why.contains(&format!("chmod {right:o} {}", path.display())), "{why}");
        fs::set_permissions(&path, fs::Permissions::from_mode(right)).unwrap();
    }
    assert!(Authority::open(&folder.path("authority")).unwrap().is_some());
}

#[test]
fn a_replaced_host_loses_its_earlier_certificate() {
    let folder = Folder::new();
    let old = folder.host("a").certificate().clone();
    let other = folder.host("b").certificate().clone();
    let new = folder.host("a");
    assert_ne!(old.serial, new.certificate().serial);
    // The new keys file knows it, without a file beside it.
    let list = new.revocations().unwrap();
    assert!(list.contains(&old) && !list.contains(new.certificate()) && !list.contains(&other));
    let hosts = folder.authority().hosts().unwrap();
    let found: Vec<_> = hosts.iter().map(|host| (&host.name[..], &host.serial[..])).collect();
    assert_eq!(found, [("a", &new.certificate().serial[..]), ("b", &other.serial[..])]);
}

#[test]
fn hosts_are_revoked_by_name_and_by_serial_number() {
    let folder = Folder::new();
    let [a, b] = ["a", "b"].map(|name| folder.host(name).certificate().clone());
    let first = folder.authority().revoke("a").unwrap();
    assert!(first.contains(&a) && !first.contains(&b));
    let second = folder.authority().revoke(&b.serial.to_uppercase()).unwrap();
    assert!(second.contains(&a) && second.contains(&b) && second.number() > first.number());
    // Again: nothing changes.
    assert_eq!(folder.authority().revoke("a").unwrap(), second);
    assert_eq!(folder.authority().revoke(&b.serial).unwrap(), second);
    let why = folder.authority().revoke("c").unwrap_err().to_string();
    assert!(why.contains("host c") && why.contains("rnet keys list"), "{why}");
}

#[test]
fn odd_names_and_days_are_refused_before_anything_changes() {
    let folder = Folder::new();
    let path = folder.path("x.keys.pem");
    for name in ["", "a b", "../a", "a/b", "ä", "a\n", "a\0", &"a".repeat(65)] {
        let why = folder.authority().add_host(&request(name), &path).unwrap_err().to_string();
        assert!(why.contains("host name") && !path.exists(), "{why}");
    }
    for days in [0, 20 * 365 + 1, u32::MAX] {
        let wanted = HostRequest { days, ..request("a") };
        let why = folder.authority().add_host(&wanted, &path).unwrap_err().to_string();
        assert!(why.contains("days") && !path.exists(), "{why}");
    }
    let many: Vec<String> = (0..400).map(|n| format!("/a{n}/{}/**", "b".repeat(40))).collect();
    let many: Vec<_> = many.iter().map(|text| (Right::Publish, &text[..])).collect();
    let wanted = HostRequest { rights: rights(&many), ..request("a") };
    let why = folder.authority().add_host(&wanted, &path).unwrap_err().to_string();
    assert!(why.contains("16384") && !path.exists(), "{why}");
    assert!(folder.authority().hosts().unwrap().is_empty());
    // Names that are valid, though no DNS name or odd as a file name.
    for name in ["_a", "a_b", "..", "-", &"a".repeat(64)] {
        let path = folder.path(&format!("{name}.keys.pem"));
        let wanted = request(name);
        assert_eq!(folder.authority().add_host(&wanted, &path).unwrap().name, name);
        assert_eq!(KeysFile::load(&path).unwrap().certificate().name, name);
    }
    assert_eq!(folder.authority().hosts().unwrap().len(), 5);
}

#[test]
fn patterns_are_those_of_topics_and_of_state_keys() {
    for (right, good, bad) in [
        (Right::Publish, "/a/*/b", "/a-b"),
        (Right::Drive, "arm/**", "/a*"),
        (Right::Read, "/a-b/1/**", "/a b"),
        (Right::Write, "k:1", "/a*"),
        (Right::Call, "/**", ""),
        (Right::Subscribe, "/_rnet/x", "//"),
    ] {
        let pattern = right.pattern(good).unwrap();
        assert!(pattern.as_str().starts_with('/'), "{pattern}");
        assert!(right.pattern(bad).is_err(), "{right} {bad}");
    }
}

#[test]
fn another_file_is_not_overwritten() {
    let folder = Folder::new();
    let b = folder.host("b");
    let other = Folder::new();
    let foreign = other.host("a");
    let text = folder.path("notes.txt");
    fs::write(&text, "notes").unwrap();
    for path in [b.path(), foreign.path(), &text] {
        let before = fs::read(path).unwrap();
        let why = folder.authority().add_host(&request("a"), path).unwrap_err().to_string();
        assert!(why.contains(&path.display().to_string()) && why.contains("-o"), "{why}");
        assert_eq!(fs::read(path).unwrap(), before);
    }
    assert_eq!(folder.authority().hosts().unwrap().len(), 1);
}
