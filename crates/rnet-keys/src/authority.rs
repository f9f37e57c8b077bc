//! The authority: issues and revokes the certificates of hosts.
//!
//! Its folder has `authority.key` (private), `authority.pem`, `hosts/NAME.pem` (the last certificate of each
//! host) and `revoked.crl`. Each file is replaced as a whole, in an order that makes every interrupted change
//! safe: a certificate that is replaced is revoked first, and a key leaves the process only after its
//! certificate was recorded. Repeating the command completes it.

use std::fs::{self, DirBuilder, File};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DistinguishedName,
    DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    RevokedCertParams, SanType, SerialNumber,
};
use ring::rand::{SecureRandom, SystemRandom};
use rnet_config::invalid_host_reason;
use rustls::pki_types::DnsName;
use time::OffsetDateTime;

use crate::certificate::{common_name, parse, right_uris};
use crate::files::{self, PRIVATE_DIR, PRIVATE_FILE, PUBLIC_FILE, pem_block};
use crate::keys_file::{authority_id, keys_text, revocations_pem};
use crate::{
    HostCertificate, KeyError, KeysFile, Result, Revocations, Rights, Token, hex, utc_date,
};

/// The validity of an authority, and the longest of a host, in days.
pub const MAX_VALIDITY_DAYS: u32 = 20 * 365;

/// Longest certificate of a host, in bytes: its rights must fit into a handshake.
pub const MAX_CERTIFICATE_LEN_BYTES: usize = 16 << 10;

/// Certificates begin this much earlier, because the clocks of hosts differ.
const BACKDATED: Duration = Duration::from_secs(5 * 60);

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A certificate to issue.
#[derive(Clone, Debug)]
pub struct HostRequest {
    /// The host's name.
    pub name: String,
    /// What the host may do.
    pub rights: Rights,
    /// The validity in days, 1 to [`MAX_VALIDITY_DAYS`].
    pub days: u32,
    /// Addresses at which browsers open the host's servers, besides its name.
    pub addresses: Vec<IpAddr>,
}

/// The certificate authority of a robot. While it is open, no other process changes it.
pub struct Authority {
    dir: PathBuf,
    issuer: Issuer<'static, KeyPair>,
    der: Vec<u8>,
    not_after: SystemTime,
    _lock: File,
}

impl Authority {
    /// Opens the authority in a folder; `None` if there is none.
    ///
    /// # Errors
    /// `Mode` and `Owner` if other users may open the folder or the key; `Io`; `File` with what is wrong.
    pub fn open(dir: &Path) -> Result<Option<Authority>> {
        match dir.join(CERTIFICATE_FILE).try_exists() {
            Ok(true) => Authority::read(dir, lock(dir)?).map(Some),
            Ok(false) => Ok(None),
            Err(why) => Err(KeyError::io("open", dir)(why)),
        }
    }

    /// Opens the authority in a folder, or creates it there; also returns whether it is new.
    ///
    /// # Errors
    /// As [`Authority::open`]; `File` if the folder has keys but no authority certificate.
    pub fn init(dir: &Path) -> Result<(Authority, bool)> {
        let created = DirBuilder::new().recursive(true).mode(PRIVATE_DIR).create(dir);
        created.map_err(KeyError::io("create", dir))?;
        let lock = lock(dir)?;
        let path = dir.join(CERTIFICATE_FILE);
        if path.exists() {
            return Ok((Authority::read(dir, lock)?, false));
        }
        // A killed `init` leaves a key that has signed nothing; a lost certificate leaves hosts too.
        if dir.join(HOSTS_DIR).exists() {
            let reason = "missing, though this authority has issued certificates; restore the file from a host: \
                          rnet keys export -o authority.pem";
            return Err(KeyError::file(&path, reason));
        }
        let key = KeyPair::generate().map_err(|why| cannot("create a key", &why))?;
        let mut params = params(&format!("robot-net authority {}", hex(&random_bytes::<4>()?)))?;
        (params.not_before, params.not_after) = validity(MAX_VALIDITY_DAYS);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key).map_err(|why| cannot("sign", &why))?;
        files::write_atomic(&dir.join(KEY_FILE), &key.serialize_pem(), PRIVATE_FILE)?;
        files::write_atomic(&path, &certificate.pem(), PUBLIC_FILE)?;
        Ok((Authority::read(dir, lock)?, true))
    }

    fn read(dir: &Path, lock: File) -> Result<Authority> {
        let path = dir.join(CERTIFICATE_FILE);
        let der = read_certificate(&path)?;
        let certificate = parse(&der).map_err(|why| KeyError::file(&path, why.to_string()))?;
        let key_path = dir.join(KEY_FILE);
        let key = KeyPair::from_pem(&files::read_private(&key_path)?);
        // The cause is left out: it may quote the key.
        let key =
            key.map_err(|_| KeyError::file(&key_path, "not a private key; restore the file"))?;
        if certificate.public_key().subject_public_key.data.as_ref() != key.public_key_raw() {
            let reason = "the key does not belong to authority.pem beside it; restore both files";
            return Err(KeyError::file(&key_path, reason));
        }
        let not_after = UNIX_EPOCH
            + Duration::from_secs(
                u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or(0),
            );
        // What signing needs of the authority's certificate; rcgen would parse the same.
        let mut params = params(common_name(&certificate)?)?;
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = Issuer::new(params, key);
        Ok(Authority { dir: dir.to_owned(), issuer, der, not_after, _lock: lock })
    }

    /// The short name of the authority, as in [`KeysFile::authority`].
    pub fn id(&self) -> String {
        authority_id(&self.der)
    }

    /// The authority's certificate in PEM; it is public.
    pub fn certificate_pem(&self) -> String {
        pem_block("CERTIFICATE", &self.der)
    }

    /// The end of the authority's validity.
    pub fn not_after(&self) -> SystemTime {
        self.not_after
    }

    /// Issues a certificate and writes the host's keys file. An earlier certificate of the host is revoked.
    /// If the file exists, it must be a keys file of the same host; its tokens are kept.
    ///
    /// # Errors
    /// `Request` for an invalid name, days or too many rights; `File` if another file is in the way; `Io`.
    pub fn add_host(&mut self, request: &HostRequest, keys_path: &Path) -> Result<HostCertificate> {
        let tokens = self.check_request(request, keys_path)?;
        let key = KeyPair::generate().map_err(|why| cannot("create a key", &why))?;
        let certificate = host_params(request)?.signed_by(&key, &self.issuer);
        let certificate = certificate.map_err(|why| cannot("sign", &why))?;
        if certificate.der().len() > MAX_CERTIFICATE_LEN_BYTES {
            return Err(KeyError::Request(format!(
                "the rights of host {} make a certificate of {} bytes; at most {MAX_CERTIFICATE_LEN_BYTES} are \
                 allowed; use fewer patterns, with * and **",
                request.name,
                certificate.der().len()
            )));
        }
        let record = self.host_path(&request.name);
        if let Some(old) = self.hosts()?.into_iter().find(|old| old.name == request.name) {
            self.revoke_serial(&old.serial)?;
        }
        let hosts = self.dir.join(HOSTS_DIR);
        let created = DirBuilder::new().recursive(true).mode(PRIVATE_DIR).create(&hosts);
        created.map_err(KeyError::io("create", &hosts))?;
        files::write_atomic(&record, &certificate.pem(), PUBLIC_FILE)?;
        let (host, key) = (certificate.pem(), key.serialize_pem());
        let text = keys_text(&host, &key, &self.certificate_pem(), &self.revocations()?, &tokens);
        let folder = files::parent(keys_path);
        let created = DirBuilder::new().recursive(true).mode(0o755).create(&folder);
        created.map_err(KeyError::io("create", &folder))?;
        files::write_atomic(keys_path, &text, PRIVATE_FILE)?;
        HostCertificate::from_der(certificate.der())
    }

    /// Checks what can be wrong before anything is changed; returns the tokens of the file to replace.
    fn check_request(&self, request: &HostRequest, keys_path: &Path) -> Result<Vec<Token>> {
        let HostRequest { name, days, .. } = request;
        if let Some(expected) = invalid_host_reason(name) {
            return Err(KeyError::Request(format!("host name {name:?} is not {expected}")));
        }
        let end = SystemTime::now() + DAY * (*days).min(MAX_VALIDITY_DAYS);
        if *days == 0 || *days > MAX_VALIDITY_DAYS || end > self.not_after {
            return Err(KeyError::Request(format!(
                "a certificate is valid for 1 to {MAX_VALIDITY_DAYS} days, and not longer than its authority, which \
                 expires on {}",
                utc_date(self.not_after)
            )));
        }
        match keys_path.symlink_metadata() {
            Err(_) => Ok(Vec::new()),
            Ok(_) => match KeysFile::load(keys_path) {
                Ok(old) if old.certificate().name == *name && old.authority() == self.id() => {
                    Ok(old.tokens().to_vec())
                }
                Ok(old) => Err(KeyError::file(
                    keys_path,
                    format!(
                        "already has the keys of host {} of authority {}; choose another file with -o, or remove it",
                        old.certificate().name,
                        old.authority()
                    ),
                )),
                Err(why) => Err(KeyError::file(
                    keys_path,
                    format!(
                        "exists and is not replaced ({why}); choose another file with -o, or remove it"
                    ),
                )),
            },
        }
    }

    /// The last certificate of each host, by name; revoked and expired ones too.
    ///
    /// # Errors
    /// `Io`; `File` for a damaged record.
    pub fn hosts(&self) -> Result<Vec<HostCertificate>> {
        let dir = self.dir.join(HOSTS_DIR);
        let mut hosts = Vec::new();
        if !dir.exists() {
            return Ok(hosts);
        }
        for entry in fs::read_dir(&dir).map_err(KeyError::io("read", &dir))? {
            let path = entry.map_err(KeyError::io("read", &dir))?.path();
            // A killed command leaves `.NAME.pem.new`.
            if path.extension().is_none_or(|extension| extension != "pem") {
                continue;
            }
            let host = HostCertificate::from_der(&read_certificate(&path)?);
            hosts.push(host.map_err(|why| KeyError::file(&path, why.to_string()))?);
        }
        hosts.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(hosts)
    }

    /// Revokes the certificate of a host, given by its name or the certificate's serial number; returns the
    /// new list. A certificate that has already been revoked is not an error.
    ///
    /// # Errors
    /// `Request` if the authority has not issued such a certificate; `Io`.
    pub fn revoke(&mut self, host: &str) -> Result<Revocations> {
        let hosts = self.hosts()?;
        let by_name = hosts.iter().find(|of| of.name == host);
        let serial = host.to_ascii_lowercase();
        let known = self.revocations()?;
        match by_name.or_else(|| hosts.iter().find(|of| of.serial == serial)) {
            Some(found) => self.revoke_serial(&found.serial),
            None if known.iter().any(|(revoked, _)| revoked == serial) => Ok(known),
            None => Err(KeyError::Request(format!(
                "authority {} has not issued a certificate to host {host}, or with that serial number; see rnet keys \
                 list",
                self.id()
            ))),
        }
    }

    fn revoke_serial(&self, serial: &str) -> Result<Revocations> {
        let known = self.revocations()?;
        if known.iter().any(|(revoked, _)| revoked == serial) {
            return Ok(known);
        }
        let now = SystemTime::now();
        let revoked = known.iter().chain([(serial, now)]);
        let revoked = revoked.filter_map(|(serial, since)| {
            Some(RevokedCertParams {
                serial_number: SerialNumber::from_slice(&from_hex(serial)?),
                revocation_time: date_time(since),
                reason_code: None,
                invalidity_date: None,
            })
        });
        // Also higher than the numbers that an authority restored from an old copy has forgotten.
        let number = (known.number() + 1).max(seconds(now));
        let list = CertificateRevocationListParams {
            this_update: date_time(now),
            next_update: date_time(now + DAY * MAX_VALIDITY_DAYS),
            crl_number: SerialNumber::from(number),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = list.signed_by(&self.issuer).map_err(|why| cannot("sign", &why))?;
        let list = self.verify_revocations(list.der())?;
        files::write_atomic(&self.revocations_path(), &revocations_pem(&list), PUBLIC_FILE)?;
        Ok(list)
    }

    /// The current revocation list.
    ///
    /// # Errors
    /// `Io`; `File` for a damaged list.
    pub fn revocations(&self) -> Result<Revocations> {
        let path = self.revocations_path();
        if !path.exists() {
            return Ok(Revocations::default());
        }
        let blocks = files::pem_blocks(&path, &files::read_public(&path)?)?;
        let block = blocks.first().ok_or_else(|| KeyError::file(&path, "not a revocation list"))?;
        let list = self.verify_revocations(&block.contents);
        list.map_err(|why| KeyError::file(&path, why.to_string()))
    }

    fn verify_revocations(&self, der: &[u8]) -> Result<Revocations> {
        Revocations::verify(der, parse(&self.der)?.public_key())
    }

    fn host_path(&self, name: &str) -> PathBuf {
        self.dir.join(HOSTS_DIR).join(format!("{name}.pem"))
    }

    fn revocations_path(&self) -> PathBuf {
        self.dir.join("revoked.crl")
    }
}

const CERTIFICATE_FILE: &str = "authority.pem";
const KEY_FILE: &str = "authority.key";
const HOSTS_DIR: &str = "hosts";

/// Checks the folder, and locks it.
fn lock(dir: &Path) -> Result<File> {
    let metadata = fs::metadata(dir).map_err(KeyError::io("open", dir))?;
    files::check_private(dir, &metadata, PRIVATE_DIR)?;
    let path = dir.join("lock");
    let mut options = File::options();
    options.write(true).create(true).truncate(false).mode(PRIVATE_FILE);
    let file = options.open(&path).map_err(KeyError::io("open", &path))?;
    file.lock().map_err(KeyError::io("lock", &path))?;
    Ok(file)
}

/// The only certificate in a file.
fn read_certificate(path: &Path) -> Result<Vec<u8>> {
    let blocks = files::pem_blocks(path, &files::read_public(path)?)?;
    match <[_; 1]>::try_from(blocks) {
        Ok([block]) if block.label == "CERTIFICATE" => Ok(block.contents),
        _ => Err(KeyError::file(path, "does not have exactly one certificate")),
    }
}

/// A certificate with this name and a random serial number.
fn params(name: &str) -> Result<CertificateParams> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let mut serial = random_bytes::<8>()?;
    // Positive, and always of 16 digits.
    serial[0] = serial[0] & 0x3f | 0x40;
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

fn host_params(request: &HostRequest) -> Result<CertificateParams> {
    let HostRequest { name, rights, days, addresses } = request;
    let mut params = params(name)?;
    (params.not_before, params.not_after) = validity(*days);
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let names = [name.clone(), format!("{name}.local"), "localhost".to_owned()];
    // A host name with `_` at a wrong place is not a DNS name, and no browser can ask for it.
    let names = names.into_iter().filter(|name| DnsName::try_from(name.as_str()).is_ok());
    let text = |text: String| text.try_into().map_err(|why| cannot("write a name", &why));
    for name in names {
        params.subject_alt_names.push(SanType::DnsName(text(name)?));
    }
    params.subject_alt_names.extend(addresses.iter().map(|ip| SanType::IpAddress(*ip)));
    for uri in right_uris(rights) {
        params.subject_alt_names.push(SanType::URI(text(uri)?));
    }
    Ok(params)
}

/// The validity from now on.
fn validity(days: u32) -> (OffsetDateTime, OffsetDateTime) {
    let now = SystemTime::now();
    (date_time(now - BACKDATED), date_time(now + DAY * days))
}

/// A time for rcgen, in whole seconds.
fn date_time(time: SystemTime) -> OffsetDateTime {
    OffsetDateTime::UNIX_EPOCH + Duration::from_secs(seconds(time))
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(_) => Err(KeyError::Request("the kernel gives no random bytes".to_owned())),
    }
}

/// The bytes of [`hex`].
fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = (0..text.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

fn cannot(action: &str, why: &rcgen::Error) -> KeyError {
    KeyError::Request(format!("cannot {action}: {why}"))
}
