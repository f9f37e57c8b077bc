//! The certificate of a host.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rnet_config::invalid_host_reason;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;

use crate::rights::{Right, Rights};
use crate::{KeyError, Result, hex};

/// How a right is written in the certificate: an address `rnet:publish:/arm/**` among its alternative names.
const RIGHT_SCHEME: &str = "rnet:";

/// What a certificate says about a host. Only [`KeysFile`](crate::KeysFile) verifies it.
#[derive(Clone, Debug)]
pub struct HostCertificate {
    /// The host's name.
    pub name: String,
    /// The serial number, in lower-case hexadecimal digits.
    pub serial: String,
    /// What the host may do.
    pub rights: Rights,
    /// The start of its validity.
    pub not_before: SystemTime,
    /// The end of its validity.
    pub not_after: SystemTime,
}

impl HostCertificate {
    /// Reads a certificate; its signature is not verified. A right that this version does not know is
    /// ignored: it allows nothing.
    ///
    /// # Errors
    /// [`KeyError::Certificate`] with the part that is wrong.
    pub fn from_der(der: &[u8]) -> Result<HostCertificate> {
        let certificate = parse(der)?;
        let refuse = |reason: &str| Err(KeyError::Certificate(reason.to_owned()));
        let name = common_name(&certificate)?;
        if let Some(expected) = invalid_host_reason(name) {
            return Err(KeyError::Certificate(format!("its name is not {expected}")));
        }
        let mut rights = Rights::default();
        let Ok(names) = certificate.subject_alternative_name() else {
            return refuse("its alternative names cannot be read");
        };
        for name in names.iter().flat_map(|names| &names.value.general_names) {
            let GeneralName::URI(uri) = name else { continue };
            let right = uri.strip_prefix(RIGHT_SCHEME).and_then(|rest| rest.split_once(':'));
            let Some((word, pattern)) = right else { continue };
            let Some(right) = Right::ALL.into_iter().find(|r| r.as_str() == word) else { continue };
            match right.pattern(pattern) {
                Ok(pattern) => rights.allow(right, pattern),
                Err(why) => return Err(KeyError::Certificate(format!("its right {word}: {why}"))),
            }
        }
        let validity = certificate.validity();
        Ok(HostCertificate {
            name: name.to_owned(),
            serial: serial_text(certificate.raw_serial()),
            rights,
            not_before: system_time(validity.not_before),
            not_after: system_time(validity.not_after),
        })
    }

    /// The time until the certificate expires; `None` if it has expired.
    pub fn expires_in(&self) -> Option<Duration> {
        self.not_after.duration_since(SystemTime::now()).ok()
    }
}

/// The addresses that write rights in a certificate.
#[cfg(feature = "authority")]
pub fn right_uris(rights: &Rights) -> impl Iterator<Item = String> {
    let of = |right| rights.patterns(right).map(move |p| format!("{RIGHT_SCHEME}{right}:{p}"));
    Right::ALL.into_iter().flat_map(of)
}

/// Parses a certificate that fills `der`.
pub fn parse(der: &[u8]) -> Result<X509Certificate<'_>> {
    match X509Certificate::from_der(der) {
        Ok(([], certificate)) => Ok(certificate),
        Ok(_) => Err(KeyError::Certificate("bytes follow it".to_owned())),
        Err(why) => Err(KeyError::Certificate(why.to_string())),
    }
}

/// The only common name of the certificate's subject.
pub fn common_name<'c>(certificate: &'c X509Certificate<'_>) -> Result<&'c str> {
    let mut names = certificate.subject().iter_common_name();
    match (names.next().map(|name| name.as_str()), names.next()) {
        (Some(Ok(name)), None) => Ok(name),
        _ => Err(KeyError::Certificate("it does not have exactly one name".to_owned())),
    }
}

/// A serial number in hexadecimal digits, without the sign byte of its encoding.
pub fn serial_text(raw: &[u8]) -> String {
    let start = raw.iter().position(|byte| *byte != 0).unwrap_or(raw.len());
    hex(&raw[start..])
}

fn system_time(time: ASN1Time) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(time.timestamp()).unwrap_or(0))
}
