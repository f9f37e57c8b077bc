//! A network that knows the certificates of its hosts, as one that keys secure does.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use rnet::{Lane, NamePattern};
use rnet_keys::{HostCertificate, Right, Rights};
use rnet_net::in_memory_transport::MemoryLink;
use rnet_net::stream::Frame;
use rnet_net::{HostId, Transport};

/// The certificates of all hosts of a network.
#[derive(Clone, Default)]
pub struct Certificates(Arc<Mutex<BTreeMap<HostId, Arc<HostCertificate>>>>);

impl Certificates {
    /// Gives a host a certificate, for another name than its own as well. It expires in a day.
    pub fn issue(&self, host: HostId, name: &str, rights: &[(Right, &str)]) {
        let mut allowed = Rights::default();
        for (right, pattern) in rights {
            allowed.allow(*right, NamePattern::foreign("pattern", pattern).unwrap());
        }
        let now = SystemTime::now();
        let certificate = HostCertificate {
            name: name.to_owned(),
            serial: format!("{:x}", host.0),
            rights: allowed,
            not_before: now,
            not_after: now + Duration::from_secs(86_400),
        };
        self.0.lock().unwrap().insert(host, Arc::new(certificate));
    }

    pub fn secure(&self, link: Arc<MemoryLink>) -> Arc<SecuredLink> {
        Arc::new(SecuredLink { link, certificates: self.clone() })
    }
}

/// The connection of a host to the network.
pub struct SecuredLink {
    link: Arc<MemoryLink>,
    certificates: Certificates,
}

impl Transport for SecuredLink {
    fn send(&self, lane: Lane, to: HostId, frame: Frame) -> io::Result<()> {
        self.link.send(lane, to, frame)
    }

    fn identity(&self, host: HostId) -> Option<Arc<HostCertificate>> {
        self.certificates.0.lock().unwrap().get(&host).cloned()
    }

    fn authority(&self) -> Option<String> {
        let is_secured = !self.certificates.0.lock().unwrap().is_empty();
        is_secured.then(|| "0123456789abcdef".to_owned())
    }
}
