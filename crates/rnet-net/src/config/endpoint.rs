//! The endpoint of a link.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The longest host of an endpoint, in bytes: that of a DNS name.
const MAX_HOST_LEN_BYTES: usize = 253;

/// The format of an endpoint, for errors.
pub(super) const ENDPOINT_FORMAT: &str =
    "an endpoint such as \"tcp/10.0.0.2:7450\", with a port of 1 to 65534";

/// The endpoint of a link: `tcp/HOST:PORT`, with an IPv6 address in brackets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    host: String,
    port: u16,
}

impl Endpoint {
    /// The address or the DNS name, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The TCP port of the urgent lane, 1 to 65534; the bulk lane uses the next port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether it is a loopback address, which no other host reaches.
    pub fn is_loopback(&self) -> bool {
        let address = self.host.parse::<IpAddr>().map(|address| address.to_canonical());
        address.map_or_else(|_| self.host.eq_ignore_ascii_case("localhost"), |a| a.is_loopback())
    }

    /// Whether a link cannot listen on both, because a lane of each uses the same port.
    pub(super) fn conflicts_with(&self, other: &Endpoint) -> bool {
        // An IPv6 address may have its interface appended.
        let address = |endpoint: &Endpoint| {
            let host = endpoint.host.split_once('%').map_or(&*endpoint.host, |(host, _)| host);
            host.parse::<IpAddr>().ok()
        };
        let is_same = match (address(self), address(other)) {
            (Some(one), Some(two)) => {
                // A listener on [::] accepts IPv4 as well.
                let covers = |one: IpAddr, two: IpAddr| {
                    one.is_unspecified() && (one.is_ipv6() || two.is_ipv4())
                };
                self.host == other.host || covers(one, two) || covers(two, one)
            }
            _ => self.host.eq_ignore_ascii_case(&other.host),
        };
        is_same && self.port.abs_diff(other.port) <= 1
    }
}

impl FromStr for Endpoint {
    /// The cause, in words that follow "expected … , found …".
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Endpoint, &'static str> {
        let Some((protocol, address)) = text.split_once('/') else {
            return Err("it does not start with \"tcp/\"");
        };
        if protocol != "tcp" {
            return Err("the protocol is not tcp");
        }
        let (host, port) = address.rsplit_once(':').ok_or("it has no port")?;
        let port = match port.bytes().all(|byte| byte.is_ascii_digit()) {
            true => match port.parse().map_err(|_| "its port is invalid")? {
                0 => return Err("its port is invalid"),
                u16::MAX => return Err("the bulk lane needs the next port, which does not exist"),
                port => port,
            },
            false => return Err("its port is not a number"),
        };
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(inner) => {
                let address = inner.split_once('%').map_or(inner, |(address, _)| address);
                address.parse::<std::net::Ipv6Addr>().map_err(|_| "its IPv6 address is invalid")?;
                inner
            }
            None if host.contains(':') => return Err("an IPv6 address must be in brackets"),
            None => host,
        };
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':' | '%');
        if host.is_empty() || host.len() > MAX_HOST_LEN_BYTES || !host.chars().all(fine) {
            return Err("its host is neither an address nor a name");
        }
        Ok(Endpoint { host: host.to_owned(), port })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "tcp/[{}]:{}", self.host, self.port),
            false => write!(f, "tcp/{}:{}", self.host, self.port),
        }
    }
}
