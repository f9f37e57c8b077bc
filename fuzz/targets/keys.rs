//! Certificates, revocation lists and keys files with any content.

#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use rnet_fuzz::{Input, domain};
use rnet_keys::{Authority, HostCertificate, HostRequest, KeysFile, Right, Rights};

/// A keys file of an authority that exists only in this process.
struct Keys {
    path: PathBuf,
    text: Vec<u8>,
    loaded: KeysFile,
}

fn keys() -> &'static Keys {
    static KEYS: OnceLock<Keys> = OnceLock::new();
    KEYS.get_or_init(|| {
        let path = domain().path().join("keys.pem");
        let (mut authority, _) = Authority::init(&domain().path().join("authority")).unwrap();
        let mut rights = Rights::default();
        rights.allow(Right::Publish, Right::Publish.pattern("/arm/**").unwrap());
        let request = HostRequest { name: "arm".into(), rights, days: 1, addresses: Vec::new() };
        authority.add_host(&request, &path).unwrap();
        Keys { text: fs::read(&path).unwrap(), loaded: KeysFile::load(&path).unwrap(), path }
    })
}

fn use_certificate(certificate: &HostCertificate) {
    assert!(!certificate.name.is_empty());
    let _ = certificate.expires_in();
    for right in Right::ALL {
        for pattern in certificate.rights.patterns(right) {
            // A pattern without a wildcard allows the name that it is.
            assert!(pattern.contains('*') || certificate.rights.allows(right, pattern));
        }
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Keys { path, text, loaded: keys } = keys();
    match HostCertificate::from_der(bytes) {
        Ok(certificate) => use_certificate(&certificate),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match keys.peer(&[bytes.into()]) {
        Ok(certificate) => use_certificate(&certificate),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match keys.verify_revocations(bytes) {
        Ok(revocations) => {
            assert!(revocations.number() > 0 && revocations.der() == bytes);
            let _ = revocations.contains(keys.certificate());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    // The whole file, and the file with a part replaced.
    let mut input = Input::new(bytes);
    let start = input.short() as usize % text.len();
    let end = text.len().min(start + usize::from(input.byte()));
    let spliced = [&text[..start], input.rest(), &text[end..]].concat();
    for content in [bytes, &spliced] {
        fs::write(path, content).unwrap();
        match KeysFile::load(path) {
            Ok(loaded) => {
                use_certificate(loaded.certificate());
                let _ = loaded.tokens().iter().any(|token| token.matches("secret"));
                assert!(!format!("{loaded:?}").contains("PRIVATE"));
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
