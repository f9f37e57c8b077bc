//! Access control: validates the WebSocket request before anything else is read.
//!
//! Any page that a browser shows can open a WebSocket to this machine. So the origin of a page must be in the
//! list of allowed origins. To prevent DNS rebinding, a server on a loopback address rejects other names in
//! the `Host` header.

use std::net::{IpAddr, SocketAddr};

use rnet_access::{Access, User};
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode, header};

/// Subprotocols that clients of this protocol offer, in order of preference.
pub const SUBPROTOCOLS: [&str; 2] = ["foxglove.sdk.v1", "foxglove.websocket.v1"];
const PROTOCOL: &str = "sec-websocket-protocol";

/// The access rules.
#[derive(Debug)]
pub struct Acceptor {
    /// Listen address of the server.
    pub listen: SocketAddr,
    /// Origins of pages that may connect, in lower case.
    pub origins: Vec<String>,
    /// Tokens and TLS.
    pub access: Access,
}

impl Acceptor {
    /// Answers a WebSocket request with a subprotocol, and tells its user; or with a rejection.
    #[allow(clippy::result_large_err, reason = "the type is tungstenite's")]
    pub fn answer(
        &self,
        peer: IpAddr,
        request: &Request,
        mut response: Response,
    ) -> Result<(Response, User), ErrorResponse> {
        match self.check(peer, request) {
            Ok((protocol, user)) => {
                let value = HeaderValue::from_static(protocol);
                response.headers_mut().insert(PROTOCOL, value);
                Ok((response, user))
            }
            Err((status, why)) => {
                let mut refusal = ErrorResponse::new(Some(why));
                *refusal.status_mut() = status;
                Err(refusal)
            }
        }
    }

    /// Selects the subprotocol, and finds the user.
    ///
    /// # Errors
    /// Why the client is rejected.
    fn check(
        &self,
        peer: IpAddr,
        request: &Request,
    ) -> Result<(&'static str, User), (StatusCode, String)> {
        let text = |name: &str| {
            request.headers().get(name).map(|value| value.to_str().unwrap_or("\u{fffd}"))
        };
        let host = text("host").unwrap_or_default();
        if !self.accepts_host(host) {
            let why = format!(
                "host name {host:.80?} is not accepted: connect to an IP address or to localhost"
            );
            return Err((StatusCode::MISDIRECTED_REQUEST, why));
        }
        if let Some(origin) = text("origin")
            && !self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
        {
            let why = format!(
                "origin {origin:.80?} is not allowed; allow it with --allow-origin {origin:.80}"
            );
            return Err((StatusCode::FORBIDDEN, why));
        }
        let bearer =
            text(header::AUTHORIZATION.as_str()).and_then(|value| value.strip_prefix("Bearer "));
        let query = request.uri().query().unwrap_or_default();
        let in_query = query.split('&').find_map(|pair| pair.strip_prefix("token="));
        let user = self.access.user(peer, [bearer, in_query].into_iter().flatten());
        let user = user.map_err(|denied| {
            let status = StatusCode::from_u16(denied.status()).unwrap_or(StatusCode::UNAUTHORIZED);
            (status, format!("{denied}; use HOST:PORT/?token=TOKEN"))
        })?;
        let offered = request.headers().get_all(PROTOCOL).iter();
        let offered: Vec<&str> = offered
            .flat_map(|value| value.to_str().unwrap_or_default().split(','))
            .map(str::trim)
            .collect();
        let protocol = SUBPROTOCOLS.into_iter().find(|known| offered.contains(known));
        protocol.map(|protocol| (protocol, user)).ok_or_else(|| {
            let why =
                format!("the client must offer the subprotocol {}", SUBPROTOCOLS.join(" or "));
            (StatusCode::BAD_REQUEST, why)
        })
    }

    /// Whether a `Host` header is accepted. A server on a loopback address accepts only IP addresses and
    /// localhost; beyond this machine, the token protects it.
    fn accepts_host(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => host,
        };
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let is_address = name.parse::<IpAddr>().is_ok();
        !name.is_empty()
            && (is_address
                || name.eq_ignore_ascii_case("localhost")
                || !self.listen.ip().is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use rnet_access::AccessOptions;

    const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn acceptor(listen: &str, token: Option<&str>) -> Acceptor {
        let origins = vec!["https://app.foxglove.dev".to_owned()];
        let token = token.map(str::to_owned);
        let options = AccessOptions { token, ..AccessOptions::local(0) };
        let access = Access::new(options, Arc::new(|_| {})).unwrap();
        Acceptor { listen: listen.parse().unwrap(), origins, access }
    }

    fn ask(acceptor: &Acceptor, uri: &str, headers: &[(&str, &str)]) -> Result<&'static str, u16> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in [("sec-websocket-protocol", "foxglove.sdk.v1")].iter().chain(headers) {
            request = request.header(*name, *value);
        }
        let checked = acceptor.check(PEER, &request.body(()).unwrap());
        checked.map(|(protocol, _)| protocol).map_err(|(status, _)| status.as_u16())
    }

    #[test]
    fn rejects_pages_of_other_origins() {
        let acceptor = acceptor("127.0.0.1:8765", None);
        let host = ("host", "127.0.0.1:8765");
        assert_eq!(ask(&acceptor, "/", &[host]), Ok("foxglove.sdk.v1"));
        let allowed = ("origin", "https://app.foxglove.dev");
        assert_eq!(ask(&acceptor, "/", &[host, allowed]), Ok("foxglove.sdk.v1"));
        for origin in ["https://evil.example", "null", "https://app.foxglove.dev.evil.example", ""]
        {
            assert_eq!(ask(&acceptor, "/", &[host, ("origin", origin)]), Err(403), "{origin}");
        }
    }

    #[test]
    fn rejects_foreign_host_names_on_this_machine() {
        let acceptor = acceptor("127.0.0.1:8765", None);
        for host in ["127.0.0.1:8765", "localhost:8765", "LOCALHOST", "[::1]:8765", "10.0.0.7:1"] {
            assert!(ask(&acceptor, "/", &[("host", host)]).is_ok(), "{host}");
        }
        for host in ["evil.example:8765", "", "localhost.evil.example", "[::1].evil.example:80"] {
            assert_eq!(ask(&acceptor, "/", &[("host", host)]), Err(421), "{host}");
        }
    }

    #[test]
    fn requires_the_token() {
        let acceptor = acceptor("0.0.0.0:8765", Some("secret0123456789"));
        let host = ("host", "robot.local:8765");
        assert!(ask(&acceptor, "/?token=secret0123456789", &[host]).is_ok());
        assert!(ask(&acceptor, "/?a=b&token=secret0123456789", &[host]).is_ok());
        assert!(ask(&acceptor, "/", &[host, ("authorization", "Bearer secret0123456789")]).is_ok());
        for uri in [
            "/",
            "/?token=",
            "/?token=secret012345678",
            "/?token=secret01234567890",
            "/?xtoken=secret0123456789",
        ] {
            assert_eq!(ask(&acceptor, uri, &[host]), Err(401), "{uri}");
        }
    }

    #[test]
    fn accepts_two_subprotocols() {
        let acceptor = acceptor("127.0.0.1:8765", None);
        let check = |offered: &str| {
            let request = Request::builder().header("host", "localhost");
            let request = request.header("sec-websocket-protocol", offered).body(()).unwrap();
            let checked = acceptor.check(PEER, &request);
            checked.map(|(protocol, _)| protocol).map_err(|(status, _)| status.as_u16())
        };
        assert_eq!(check("foxglove.websocket.v1"), Ok("foxglove.websocket.v1"));
        assert_eq!(check("a, foxglove.websocket.v1, foxglove.sdk.v1"), Ok("foxglove.sdk.v1"));
        assert_eq!(check("foxglove.sdk.v11"), Err(400));
    }
}
