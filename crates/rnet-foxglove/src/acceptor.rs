//! Access control: validates the WebSocket request before anything else is read.
//!
//! Any page that a browser shows can open a WebSocket to this machine. So the origin of a page must be in the
//! list of allowed origins. To prevent DNS rebinding, a server on a loopback address rejects other names in
//! the `Host` header.

use std::net::{IpAddr, SocketAddr};

use rnet_access::tokens_match;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode, header};

/// Subprotocols that clients of this protocol offer, in order of preference.
pub const SUBPROTOCOLS: [&str; 2] = ["foxglove.sdk.v1", "foxglove.websocket.v1"];
const PROTOCOL: &str = "sec-websocket-protocol";

/// The access rules.
#[derive(Clone, Debug)]
pub struct Acceptor {
    /// Listen address of the server.
    pub listen: SocketAddr,
    /// Origins of pages that may connect, in lower case.
    pub origins: Vec<String>,
    /// The required token, if any.
    pub token: Option<String>,
}

impl Acceptor {
    /// Answers a WebSocket request with a subprotocol or with a rejection.
    #[allow(clippy::result_large_err, reason = "the type is tungstenite's")]
    pub fn answer(
        &self,
        request: &Request,
        mut response: Response,
    ) -> Result<Response, ErrorResponse> {
        match self.check(request) {
            Ok(protocol) => {
                let value = HeaderValue::from_static(protocol);
                response.headers_mut().insert(PROTOCOL, value);
                Ok(response)
            }
            Err((status, why)) => {
                let mut refusal = ErrorResponse::new(Some(why));
                *refusal.status_mut() = status;
                Err(refusal)
            }
        }
    }

    /// Selects the subprotocol.
    ///
    /// # Errors
    /// Why the client is rejected.
    pub fn check(&self, request: &Request) -> Result<&'static str, (StatusCode, String)> {
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
        if let Some(token) = &self.token {
            let shown =
                text(header::AUTHORIZATION.as_str()).and_then(|said| said.strip_prefix("Bearer "));
            let query = request.uri().query().unwrap_or_default();
            let asked = query.split('&').find_map(|pair| pair.strip_prefix("token="));
            if ![shown, asked].into_iter().flatten().any(|shown| tokens_match(shown, token)) {
                let why =
                    "the token is missing or wrong: use ws://HOST:PORT/?token=TOKEN".to_owned();
                return Err((StatusCode::UNAUTHORIZED, why));
            }
        }
        let offered = request.headers().get_all(PROTOCOL).iter();
        let offered: Vec<&str> = offered
            .flat_map(|value| value.to_str().unwrap_or_default().split(','))
            .map(str::trim)
            .collect();
        let protocol = SUBPROTOCOLS.into_iter().find(|known| offered.contains(known));
        protocol.ok_or_else(|| {
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

    fn acceptor(listen: &str, token: Option<&str>) -> Acceptor {
        let origins = vec!["https://app.foxglove.dev".to_owned()];
        Acceptor { listen: listen.parse().unwrap(), origins, token: token.map(str::to_owned) }
    }

    fn ask(acceptor: &Acceptor, uri: &str, headers: &[(&str, &str)]) -> Result<&'static str, u16> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in [("sec-websocket-protocol", "foxglove.sdk.v1")].iter().chain(headers) {
            request = request.header(*name, *value);
        }
        acceptor.check(&request.body(()).unwrap()).map_err(|(status, _)| status.as_u16())
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
        let acceptor = acceptor("0.0.0.0:8765", Some("secret"));
        let host = ("host", "robot.local:8765");
        assert!(ask(&acceptor, "/?token=secret", &[host]).is_ok());
        assert!(ask(&acceptor, "/?a=b&token=secret", &[host]).is_ok());
        assert!(ask(&acceptor, "/", &[host, ("authorization", "Bearer secret")]).is_ok());
        for uri in ["/", "/?token=", "/?token=secre", "/?token=secrett", "/?xtoken=secret"] {
            assert_eq!(ask(&acceptor, uri, &[host]), Err(401), "{uri}");
        }
    }

    #[test]
    fn accepts_two_subprotocols() {
        let acceptor = acceptor("127.0.0.1:8765", None);
        let check = |offered: &str| {
            let request = Request::builder().header("host", "localhost");
            let request = request.header("sec-websocket-protocol", offered).body(()).unwrap();
            acceptor.check(&request).map_err(|(status, _)| status.as_u16())
        };
        assert_eq!(check("foxglove.websocket.v1"), Ok("foxglove.websocket.v1"));
        assert_eq!(check("a, foxglove.websocket.v1, foxglove.sdk.v1"), Ok("foxglove.sdk.v1"));
        assert_eq!(check("foxglove.sdk.v11"), Err(400));
    }
}
