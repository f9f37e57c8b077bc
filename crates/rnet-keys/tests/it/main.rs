//! The integration tests of this crate, one module for each subject.

mod authority;
mod damaged;
mod files;
mod handshake;
mod revocations;
mod tokens;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair,
    date_time_ymd,
};
use rnet_keys::{Authority, HostRequest, KeysFile, Right, Rights};

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("rnet-keys-{}-{n}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Folder(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The authority in the folder; new at the first call.
    fn authority(&self) -> Authority {
        Authority::init(&self.path("authority")).unwrap().0
    }

    /// Adds a host with all rights, and reads its keys file.
    fn host(&self, name: &str) -> KeysFile {
        let path = self.path(&format!("{name}.keys.pem"));
        self.authority().add_host(&request(name), &path).unwrap();
        KeysFile::load(&path).unwrap()
    }

    /// A keys file of this folder's authority with a certificate of these years.
    fn host_of_years(&self, name: &str, from: i32, to: i32) -> KeysFile {
        let pem = self.authority().certificate_pem();
        let key = KeyPair::from_pem(&read(&self.path("authority/authority.key"))).unwrap();
        let key_of_host = KeyPair::generate().unwrap();
        let mut params = params(name);
        (params.not_before, params.not_after) =
            (date_time_ymd(from, 1, 1), date_time_ymd(to, 1, 1));
        let issuer = Issuer::new(params_of_issuer(&pem), key);
        let certificate = params.signed_by(&key_of_host, &issuer).unwrap();
        let text = format!("{}{}{pem}", certificate.pem(), key_of_host.serialize_pem());
        let path = self.path(&format!("{name}.keys.pem"));
        write_private(&path, &text);
        KeysFile::load(&path).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A host that may do everything.
fn request(name: &str) -> HostRequest {
    HostRequest { name: name.to_owned(), rights: Rights::all(), days: 365, addresses: Vec::new() }
}

fn rights(list: &[(Right, &str)]) -> Rights {
    let mut rights = Rights::default();
    list.iter().for_each(|(right, text)| rights.allow(*right, right.pattern(text).unwrap()));
    rights
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

fn write_private(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// The parameters of a host's certificate.
fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    params
}

/// The parameters of an issuer with the name of this authority.
fn params_of_issuer(authority_pem: &str) -> CertificateParams {
    let (_, block) = x509_parser::pem::parse_x509_pem(authority_pem.as_bytes()).unwrap();
    let certificate = block.parse_x509().unwrap();
    params(certificate.subject().iter_common_name().next().unwrap().as_str().unwrap())
}

/// The first certificate in a PEM text.
fn certificate_der(pem: &str) -> Vec<u8> {
    x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap().1.contents
}
