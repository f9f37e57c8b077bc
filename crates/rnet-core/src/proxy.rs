//! Description of an endpoint that represents endpoints of another host.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::limits::MAX_HOST_LEN_BYTES;
use crate::name::NodeName;

/// The remote endpoint that a proxy represents: its host, its node and its endpoint id there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedProxy")]
pub struct Proxy {
    host: String,
    node: String,
    endpoint: u64,
}

/// As read from the description of an endpoint, not checked.
#[derive(Deserialize)]
struct UncheckedProxy {
    host: String,
    node: String,
    endpoint: u64,
}

impl Proxy {
    /// `endpoint` is the id of the publisher there, or of one of the subscriptions.
    ///
    /// # Errors
    /// `BadName` for a host that does not consist of 1 to 64 letters, digits, `-`, `.` and `_`, or an invalid
    /// node name.
    pub fn new(host: &str, node: &str, endpoint: u64) -> Result<Proxy> {
        let fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        if host.is_empty() || host.len() > MAX_HOST_LEN_BYTES || !host.bytes().all(fine) {
            let name = host.chars().take(MAX_HOST_LEN_BYTES).collect();
            let why =
                format!("it must have 1 to {MAX_HOST_LEN_BYTES} letters, digits, '-', '.' and '_'");
            return Err(Error::BadName { what: "host", name, why });
        }
        let node = NodeName::new(node)?.to_string();
        Ok(Proxy { host: host.to_owned(), node, endpoint })
    }

    /// The host.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Name of the node on that host.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Id of the endpoint on that host.
    pub fn endpoint(&self) -> u64 {
        self.endpoint
    }
}

impl TryFrom<UncheckedProxy> for Proxy {
    type Error = Error;

    fn try_from(written: UncheckedProxy) -> Result<Proxy> {
        Proxy::new(&written.host, &written.node, written.endpoint)
    }
}

impl fmt::Display for Proxy {
    /// `@host/node`, as users see the node: local nodes cannot have such a name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}{}", self.host, self.node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_names_are_rejected_on_parsing() {
        let proxy = Proxy::new("robot-2.lab", "arm", 7).unwrap();
        assert_eq!(proxy.to_string(), "@robot-2.lab/arm");
        let json = serde_json::to_string(&proxy).unwrap();
        assert_eq!(serde_json::from_str::<Proxy>(&json).unwrap(), proxy);
        for host in ["", "a/b", "a b", "\u{1b}[2J", &"a".repeat(65)] {
            assert!(Proxy::new(host, "/arm", 0).is_err(), "{host:?}");
            let json = serde_json::json!({"host": host, "node": "/arm", "endpoint": 0});
            assert!(serde_json::from_value::<Proxy>(json).is_err(), "{host:?}");
        }
        for node in ["", "/", "/1", "/a b", &"/a".repeat(200)] {
            let json = serde_json::json!({"host": "h", "node": node, "endpoint": 0});
            assert!(serde_json::from_value::<Proxy>(json).is_err(), "{node:?}");
        }
        // A node name without its leading slash is accepted and completed.
        let json = serde_json::json!({"host": "h", "node": "arm", "endpoint": 1});
        assert_eq!(serde_json::from_value::<Proxy>(json).unwrap().node(), "/arm");
    }
}
