//! The list of revoked certificates.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;
use x509_parser::x509::SubjectPublicKeyInfo;

use crate::certificate::serial_text;
use crate::{HostCertificate, KeyError, Result};

/// The revoked certificates of an authority: a verified list, or an empty one with number 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revocations {
    number: u64,
    revoked: BTreeMap<String, SystemTime>,
    der: Vec<u8>,
}

impl Revocations {
    /// Verifies a list.
    pub(crate) fn verify(der: &[u8], authority: &SubjectPublicKeyInfo) -> Result<Revocations> {
        let refuse = |reason: &str| Err(KeyError::Revocations(reason.to_owned()));
        let list = match CertificateRevocationList::from_der(der) {
            Ok(([], list)) => list,
            Ok(_) => return refuse("bytes follow it"),
            Err(_) => return refuse("it cannot be read"),
        };
        if list.verify_signature(authority).is_err() {
            return refuse("it is not signed by this host's authority");
        }
        let number = list.crl_number().and_then(|number| u64::try_from(number).ok());
        let Some(number) = number.filter(|number| *number > 0) else {
            return refuse("it has no number");
        };
        let since = |time: i64| UNIX_EPOCH + Duration::from_secs(u64::try_from(time).unwrap_or(0));
        let revoked = list.iter_revoked_certificates();
        let revoked = revoked
            .map(|one| (serial_text(one.raw_serial()), since(one.revocation_date.timestamp())));
        Ok(Revocations { number, revoked: revoked.collect(), der: der.to_vec() })
    }

    /// The number of the list; a newer list has a higher one. 0: no list exists.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether a certificate has been revoked.
    pub fn contains(&self, certificate: &HostCertificate) -> bool {
        self.revoked.contains_key(&certificate.serial)
    }

    /// The serial numbers of revoked certificates, each with the time of its revocation.
    pub fn iter(&self) -> impl Iterator<Item = (&str, SystemTime)> {
        self.revoked.iter().map(|(serial, since)| (serial.as_str(), *since))
    }

    /// The signed list (DER); empty if no list exists.
    pub fn der(&self) -> &[u8] {
        &self.der
    }
}
