//! Random and damaged bytes: errors, never a panic, and nothing is accepted.

use proptest::prelude::*;
use rnet_keys::{HostCertificate, KeysFile};
use std::sync::LazyLock;

use crate::{Folder, certificate_der, read, write_private};

/// One host, and a list that revokes another.
static HOST: LazyLock<(Folder, KeysFile, Vec<u8>)> = LazyLock::new(|| {
    let folder = Folder::new();
    let keys = folder.host("a");
    folder.host("b");
    let list = folder.authority().revoke("b").unwrap().der().to_vec();
    (folder, keys, list)
});

/// Changes a byte, inserts some, or removes some.
fn damage(bytes: &[u8], at: usize, with: &[u8], removed: usize) -> Vec<u8> {
    let at = at % (bytes.len() + 1);
    let end = bytes.len().min(at + removed);
    [&bytes[..at], with, &bytes[end..]].concat()
}

proptest! {
    #[test]
    fn random_bytes_are_not_keys(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(HostCertificate::from_der(&bytes).is_err());
        prop_assert!(HOST.1.verify_revocations(&bytes).is_err());
        prop_assert!(HOST.1.peer(&[bytes.into()]).is_err());
    }

    #[test]
    fn a_damaged_certificate_or_list_is_refused(
        at in any::<usize>(),
        with in prop::collection::vec(any::<u8>(), 0..4),
        removed in 0_usize..4,
    ) {
        let (_, keys, list) = &*HOST;
        let certificate = certificate_der(keys.certificate_pem());
        let changed = damage(&certificate, at, &with, removed);
        let _ = HostCertificate::from_der(&changed);
        if changed != certificate {
            prop_assert!(keys.peer(&[changed.into()]).is_err());
        }
        let changed = damage(list, at, &with, removed);
        if let Ok(read) = keys.verify_revocations(&changed) {
            let list = keys.verify_revocations(list).unwrap();
            prop_assert!(read.number() == list.number() && read.iter().eq(list.iter()));
        }
    }

    #[test]
    fn a_damaged_keys_file_does_not_panic(
        at in any::<usize>(),
        with in "[ -~\n]{0,6}",
        removed in 0_usize..200,
    ) {
        let (folder, keys, _) = &*HOST;
        let text = read(keys.path());
        let changed = damage(text.as_bytes(), at, with.as_bytes(), removed);
        let path = folder.path(&format!("damaged-{at}.pem"));
        write_private(&path, std::str::from_utf8(&changed).unwrap());
        match KeysFile::load(&path) {
            Ok(read) => prop_assert_eq!(&read.certificate().serial, &keys.certificate().serial),
            Err(why) => {
                let secret = keys.key_pem().lines().nth(1).unwrap();
                prop_assert!(!why.to_string().contains(&secret[..20]));
            }
        }
    }

    #[test]
    fn random_text_is_not_a_keys_file(text in "(-----(BEGIN|END) (CERTIFICATE|X509 CRL|PRIVATE KEY|RNET TOKEN)-----\n|[A-Za-z0-9+/=]{0,40}\n|-----|.){0,12}") {
        let path = HOST.0.path("random.pem");
        write_private(&path, &text);
        prop_assert!(KeysFile::load(&path).is_err());
    }
}
