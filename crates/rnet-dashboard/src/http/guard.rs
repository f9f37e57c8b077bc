//! Access control: rejects pages of other sites, rebound names, and clients without the token.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, COOKIE, HOST, HeaderMap, HeaderName, ORIGIN};
use rnet_access::{Access, Denied, User};

/// Checks requests before anything else.
pub struct AccessGuard {
    pub access: Arc<Access>,
    /// Host names that are accepted.
    names: Vec<String>,
    /// Whether it listens on loopback only.
    is_local: bool,
    scheme: &'static str,
    cookie: String,
}

type Verdict = Result<(), (StatusCode, &'static str)>;

impl AccessGuard {
    /// The guard of a server that listens on this port.
    pub fn new(access: Arc<Access>, names: &[String], port: u16) -> AccessGuard {
        let certified = access.host().map(|host| [format!("{host}.local"), host.to_owned()]);
        let names = names.iter().cloned().chain(certified.into_iter().flatten());
        AccessGuard {
            names: names.chain(["localhost".to_owned()]).collect(),
            is_local: access.options().address.ip().is_loopback(),
            scheme: if access.has_tls() { "https" } else { "http" },
            // Browsers send cookies to all ports of a host.
            cookie: format!("rnet_dashboard_{port}"),
            access,
        }
    }

    /// URL for a browser, without a token.
    pub fn url(&self, address: SocketAddr) -> String {
        let name = match self.names.as_slice() {
            [name, _, ..] if !self.is_local => format!("{name}:{}", address.port()),
            _ => address.to_string(),
        };
        format!("{}://{name}/", self.scheme)
    }

    /// Whether a request may be processed.
    pub fn check(&self, headers: &HeaderMap, is_socket: bool) -> Verdict {
        let one = |name: HeaderName| {
            let mut all = headers.get_all(name).iter();
            let first = all.next().map(|value| value.to_str().unwrap_or("\0"));
            if all.next().is_some() { Some("\0") } else { first }
        };
        let host = one(HOST).unwrap_or("");
        if !self.is_own_host(host) {
            let why = "this server does not accept that host name (add it with --name)";
            return Err((StatusCode::MISDIRECTED_REQUEST, why));
        }
        let site = one(HeaderName::from_static("sec-fetch-site"));
        let mode = one(HeaderName::from_static("sec-fetch-mode"));
        match one(ORIGIN) {
            Some(origin) => {
                let ours = format!("{}://{host}", self.scheme);
                // A form sent from the login page, which has no referrer.
                let is_own_form = origin == "null" && site == Some("same-origin") && !is_socket;
                if !origin.eq_ignore_ascii_case(&ours) && !is_own_form {
                    return Err((
                        StatusCode::FORBIDDEN,
                        "requests from pages of other sites are not allowed",
                    ));
                }
            }
            // Browsers always send the origin of the requesting page.
            None if is_socket && (site.is_some() || mode.is_some()) => {
                return Err((StatusCode::FORBIDDEN, "the Origin header is missing"));
            }
            None => {}
        }
        // Rejects embedding by another site; following a link is allowed.
        let is_foreign = matches!(site, Some("cross-site" | "same-site"));
        if is_foreign && mode != Some("navigate") {
            return Err((
                StatusCode::FORBIDDEN,
                "requests from pages of other sites are not allowed",
            ));
        }
        Ok(())
    }

    /// Whether a `Host` header names this server. IP addresses cannot be rebound; names can.
    fn is_own_host(&self, host: &str) -> bool {
        let (name, port) = match host.strip_prefix('[') {
            Some(rest) => match rest.split_once(']') {
                Some((name, port)) => (name, port.strip_prefix(':')),
                None => return false,
            },
            None => match host.split_once(':') {
                Some((name, port)) => (name, Some(port)),
                None => (host, None),
            },
        };
        if port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return false;
        }
        match name.parse::<IpAddr>() {
            Ok(address) => address.is_loopback() || !self.is_local,
            Err(_) => self.names.iter().any(|ours| ours.eq_ignore_ascii_case(name)),
        }
    }

    /// The user of a request, by its bearer token or its session.
    pub fn user(&self, peer: IpAddr, headers: &HeaderMap) -> Result<User, Denied> {
        let text = |name: HeaderName| headers.get_all(name).iter().filter_map(|v| v.to_str().ok());
        let bearers = text(AUTHORIZATION).filter_map(|value| value.strip_prefix("Bearer "));
        let cookies = text(COOKIE).flat_map(|value| value.split(';'));
        let cookies = cookies.filter_map(|pair| pair.trim().split_once('='));
        let sessions = cookies.filter(|(name, _)| *name == self.cookie).map(|(_, value)| value);
        self.access.user(peer, bearers.chain(sessions).map(str::trim))
    }

    /// The session cookie for a correct token.
    pub fn session(&self, token: &str) -> String {
        let secure = if self.scheme == "https" { "; Secure" } else { "" };
        format!("{}={token}; Path=/; HttpOnly; SameSite=Strict{secure}", self.cookie)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rnet_access::AccessOptions;

    fn guard(is_local: bool) -> AccessGuard {
        let access = Access::new(AccessOptions::local(0), Arc::new(|_| {})).unwrap();
        let names = ["Robot.local".to_owned()];
        AccessGuard { is_local, ..AccessGuard::new(Arc::new(access), &names, 8420) }
    }

    #[test]
    fn rejects_host_names_that_can_be_rebound() {
        let local = guard(true);
        for host in [
            "localhost",
            "localhost:8420",
            "127.0.0.1:1",
            "[::1]:8420",
            "127.9.9.9",
            "robot.LOCAL:80",
        ] {
            assert!(local.is_own_host(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:8420",
            "192.168.1.5",
            "[::1",
            "[fe80::1]",
            "localhost:x",
            "localhost:8420:1",
            "0.0.0.0:8420",
            "127.1",
            "\0",
        ] {
            assert!(!local.is_own_host(host), "{host}");
        }
        let wide = guard(false);
        assert!(wide.is_own_host("192.168.1.5:8420") && wide.is_own_host("robot.local"));
        assert!(!wide.is_own_host("evil.example"));
    }
}
