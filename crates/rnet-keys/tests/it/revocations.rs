//! Revocation lists: verified, ordered, kept.

use std::fs;
use std::thread;

use rcgen::{
    CertificateRevocationListParams, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, SerialNumber,
    date_time_ymd,
};
use rnet_keys::{Authority, KeyError, KeysFile, Revocations};

use crate::{Folder, params, params_of_issuer, read, request};

#[test]
fn a_list_is_kept_beside_the_keys_file_and_never_replaced_by_an_older_one() {
    let folder = Folder::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| folder.host(name));
    assert_eq!(a.revocations().unwrap().number(), 0);
    let older = folder.authority().revoke("b").unwrap();
    let newer = folder.authority().revoke("c").unwrap();
    a.save_revocations(&newer).unwrap();
    a.save_revocations(&older).unwrap();
    let kept = KeysFile::load(a.path()).unwrap().revocations().unwrap();
    assert_eq!(kept, newer);
    assert!(kept.contains(b.certificate()) && kept.contains(c.certificate()));
    assert!(!kept.contains(a.certificate()));
    // A damaged list is an error, and the next list replaces it.
    let path = folder.path("a.keys.pem.crl");
    let text = read(&path);
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    let why = a.revocations().unwrap_err().to_string();
    assert!(why.contains(&path.display().to_string()), "{why}");
    a.save_revocations(&older).unwrap();
    assert_eq!(a.revocations().unwrap(), older);
}

#[test]
fn a_forged_list_is_refused() {
    let folder = Folder::new();
    let (a, b) = (folder.host("a"), folder.host("b"));
    let list = folder.authority().revoke("b").unwrap();
    assert_eq!(a.verify_revocations(list.der()).unwrap(), list);
    let other = Folder::new();
    other.host("b");
    let foreign = other.authority().revoke("b").unwrap();
    let refused = |der: &[u8]| {
        let why = a.verify_revocations(der).unwrap_err();
        assert!(matches!(why, KeyError::Revocations(_)), "{why}");
        why.to_string()
    };
    assert!(refused(foreign.der()).contains("not signed by this host's authority"));
    assert!(refused(&[list.der(), b"x"].concat()).contains("bytes follow"));
    for at in 0..list.der().len() {
        let mut changed = list.der().to_vec();
        changed[at] ^= 1;
        // The name of the algorithm after the list is not signed; the list itself is.
        let is_same =
            |read: Revocations| read.number() == list.number() && read.iter().eq(list.iter());
        assert!(a.verify_revocations(&changed).map_or(true, is_same), "byte {at}");
        refused(&list.der()[..at]);
    }
    // Signed by a host under the authority's name.
    let own = KeyPair::from_pem(b.key_pem()).unwrap();
    let mut name = params_of_issuer(a.authority_pem());
    name.key_usages = vec![KeyUsagePurpose::CrlSign];
    let forged = CertificateRevocationListParams {
        this_update: date_time_ymd(2026, 1, 1),
        next_update: date_time_ymd(2090, 1, 1),
        crl_number: SerialNumber::from(u64::MAX),
        issuing_distribution_point: None,
        revoked_certs: Vec::new(),
        key_identifier_method: KeyIdMethod::Sha256,
    };
    let signed = forged.signed_by(&Issuer::new(name, own)).unwrap();
    assert!(refused(signed.der()).contains("not signed by this host's authority"));
    // Signed by the authority, with a number that does not fit.
    let key = KeyPair::from_pem(&read(&folder.path("authority/authority.key"))).unwrap();
    for number in [vec![0], vec![1; 9]] {
        let list = CertificateRevocationListParams { crl_number: number.into(), ..forged.clone() };
        let signed = list
            .signed_by(&Issuer::new(params("x"), KeyPair::from_pem(&key.serialize_pem()).unwrap()))
            .unwrap();
        assert!(refused(signed.der()).contains("number"));
    }
}

#[test]
fn commands_at_the_same_time_lose_nothing() {
    let folder = Folder::new();
    let dir = folder.path("authority");
    let names: Vec<String> = (0..8).map(|n| format!("h{n}")).collect();
    let numbers: Vec<u64> = thread::scope(|scope| {
        let threads: Vec<_> = names
            .iter()
            .map(|name| {
                let (folder, dir) = (&folder, &dir);
                scope.spawn(move || {
                    let path = folder.path(&format!("{name}.keys.pem"));
                    let (mut authority, _) = Authority::init(dir).unwrap();
                    authority.add_host(&request(name), &path).unwrap();
                    drop(authority);
                    Authority::open(dir).unwrap().unwrap().revoke(name).unwrap().number()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let authority = folder.authority();
    let (hosts, list) = (authority.hosts().unwrap(), authority.revocations().unwrap());
    assert_eq!(
        hosts.iter().map(|host| &host.name).collect::<Vec<_>>(),
        names.iter().collect::<Vec<_>>()
    );
    assert!(hosts.iter().all(|host| list.contains(host)));
    let mut different = numbers.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!((different.len(), different.last()), (8, Some(&list.number())));
}

#[test]
fn an_authority_restored_from_an_old_copy_still_issues_newer_lists() {
    let folder = Folder::new();
    let (a, _) = (folder.host("a"), folder.host("b"));
    let before = folder.authority().revoke("a").unwrap();
    fs::remove_file(folder.path("authority/revoked.crl")).unwrap();
    // The numbers follow the clock, which has passed a second since.
    let number = loop {
        let number = folder.authority().revoke("b").unwrap().number();
        if number > before.number() {
            break number;
        }
        fs::remove_file(folder.path("authority/revoked.crl")).unwrap();
        thread::sleep(std::time::Duration::from_millis(100));
    };
    a.save_revocations(&folder.authority().revocations().unwrap()).unwrap();
    assert_eq!(a.revocations().unwrap().number(), number);
}
