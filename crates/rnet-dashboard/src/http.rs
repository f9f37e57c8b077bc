//! HTTP requests other than the WebSocket.

mod body;
mod download;
mod guard;
mod page;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH, LOCATION, REFERRER_POLICY, RETRY_AFTER,
    SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::response::Builder;
use hyper::{Method, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rnet_access::{Denied, User};
use rnet_monitor::MetricsFormat;
use tokio::sync::Semaphore;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

pub use body::Body;
pub use download::{MAX_DOWNLOADS, Progress};
pub use guard::AccessGuard;

use crate::hub::Hub;
use crate::session::Session;
use crate::socket::{self, PageSlots};
use crate::ticks::{MonitorQuery, MonitorRequest};
use crate::wire::MAX_REQUEST_LEN_BYTES;

/// Maximum length of a login body, in bytes. Other bodies are not read.
const MAX_LOGIN_LEN_BYTES: usize = 4 << 10;
/// Timeout of an answer with figures.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a login body, which needs no token: a slow sender occupies a connection that others may need.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(2);
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; \
                      manifest-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const TEXT: &str = "text/plain; charset=utf-8";
const FORM: &str = "application/x-www-form-urlencoded";
const OPENMETRICS: &str = "application/openmetrics-text";

/// State shared by the handlers.
pub struct Shared {
    pub hub: Arc<Hub>,
    pub guard: AccessGuard,
    pub pages: Arc<PageSlots>,
    pub downloads: Arc<Semaphore>,
}

pub type Request = hyper::Request<Incoming>;
pub type Response = hyper::Response<Body>;

fn head(status: StatusCode) -> Builder {
    hyper::Response::builder().status(status)
}

/// An answer with these headers; 500 if one of them is invalid.
fn answer(head: Builder, body: impl Into<Body>) -> Response {
    head.body(body.into()).unwrap_or_else(|_| {
        let mut failed = Response::new("".into());
        *failed.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        failed
    })
}

fn text(status: StatusCode, text: impl Into<Body>) -> Response {
    answer(head(status).header(CONTENT_TYPE, TEXT), text)
}

/// Answers or rejects a request, and adds the security headers to each answer.
pub async fn respond(
    shared: &Arc<Shared>,
    progress: &Progress,
    peer: IpAddr,
    request: Request,
) -> Response {
    let path = request.uri().path();
    let checked = shared.guard.check(request.headers(), path == "/ws");
    let mut response = match checked {
        Err((status, why)) => text(status, format!("{why}\n")),
        Ok(()) if path == "/login" => login(shared, peer, request).await,
        Ok(()) => match token_of(request.uri()) {
            Some(token) if shared.guard.access.requires_token() => log_in(shared, peer, &token),
            _ => match shared.guard.user(peer, request.headers()) {
                Ok(user) => route(shared, progress, user, request).await,
                Err(denied) => deny(denied, path == "/"),
            },
        },
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

async fn route(
    shared: &Arc<Shared>,
    progress: &Progress,
    user: User,
    request: Request,
) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return answer(head(StatusCode::METHOD_NOT_ALLOWED).header(ALLOW, "GET,HEAD"), "");
    }
    // All of these show data; the WebSocket checks the role for each request.
    match request.uri().path() {
        "/ws" => upgrade(shared, user, request),
        "/metrics" => metrics(&shared.hub, request.headers()).await,
        "/healthz" => health(&shared.hub).await,
        path => match path.strip_prefix("/recordings/") {
            Some(name) if !name.is_empty() && !name.contains('/') => {
                download::download(shared, progress, user, body::percent_decode(name)).await
            }
            _ => file(path, request.headers()),
        },
    }
}

/// The token in a link, which is accepted only for the page itself.
fn token_of(uri: &Uri) -> Option<String> {
    let query = uri.query().filter(|_| uri.path() == "/")?;
    query.split('&').find_map(|pair| pair.strip_prefix("token=")).map(str::to_owned)
}

/// The answer to a client without a valid token; with a form, if it is a browser that opens the page.
fn deny(denied: Denied, with_form: bool) -> Response {
    let status = StatusCode::from_u16(denied.status()).unwrap_or(StatusCode::UNAUTHORIZED);
    let mut response = match denied {
        Denied::Missing if with_form => page::login(status, ""),
        denied if with_form => page::login(status, &format!("Not signed in: {denied}.")),
        denied => text(status, format!("{denied}\n")),
    };
    if let Denied::TooMany(wait) = denied {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
    }
    response
}

/// `GET` shows the form, to sign in with another token; `POST` is the form.
async fn login(shared: &Shared, peer: IpAddr, request: Request) -> Response {
    match *request.method() {
        Method::GET | Method::HEAD => return page::login(StatusCode::OK, ""),
        Method::POST => {}
        _ => {
            return answer(head(StatusCode::METHOD_NOT_ALLOWED).header(ALLOW, "GET,HEAD,POST"), "");
        }
    }
    let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    if !kind.trim().eq_ignore_ascii_case(FORM) {
        return text(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            format!("a login must be a form ({FORM})\n"),
        );
    }
    let form = body::read(request.into_body(), MAX_LOGIN_LEN_BYTES);
    match tokio::time::timeout(LOGIN_TIMEOUT, form).await {
        Ok(Ok(Some(form))) => match body::form_field(&form, "token") {
            Some(token) => log_in(shared, peer, token.trim()),
            None => text(StatusCode::UNPROCESSABLE_ENTITY, "the form has no field `token`\n"),
        },
        Ok(Ok(None)) => {
            let why = format!("a login has at most {MAX_LOGIN_LEN_BYTES} bytes\n");
            text(StatusCode::PAYLOAD_TOO_LARGE, why)
        }
        Ok(Err(why)) => text(StatusCode::BAD_REQUEST, format!("{why}\n")),
        Err(_) => {
            let mut late = text(StatusCode::REQUEST_TIMEOUT, "the token did not arrive in time\n");
            late.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            late
        }
    }
}

fn log_in(shared: &Shared, peer: IpAddr, token: &str) -> Response {
    match shared.guard.access.user(peer, [token]) {
        Ok(_) => {
            let mut head = head(StatusCode::SEE_OTHER).header(LOCATION, "/");
            if shared.guard.access.requires_token() {
                head = head.header(SET_COOKIE, shared.guard.session(token));
            }
            answer(head, "")
        }
        Err(denied) => deny(denied, true),
    }
}

/// Answers the handshake of a WebSocket. hyper hands over the connection after it has sent the answer.
fn upgrade(shared: &Shared, user: User, mut request: Request) -> Response {
    let response = match create_response_with_body(&request, || "".into()) {
        Ok(response) => response,
        Err(why) => return text(StatusCode::BAD_REQUEST, format!("{why}\n")),
    };
    let Some(place) = shared.pages.take() else {
        let why = format!("{} pages are connected already; close one\n", socket::MAX_PAGES);
        return text(StatusCode::SERVICE_UNAVAILABLE, why);
    };
    let (hub, pages) = (shared.hub.clone(), shared.pages.clone());
    let access = shared.guard.access.clone();
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let Ok(stream) = upgraded.await else { return };
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_REQUEST_LEN_BYTES))
            .max_frame_size(Some(MAX_REQUEST_LEN_BYTES));
        let stream = TokioIo::new(stream);
        let stream = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
        socket::serve(Session::new(hub, access, user), pages, stream, place).await;
    });
    response
}

async fn ask(hub: &Hub, what: MonitorQuery) -> Option<(bool, String)> {
    let (asked, answer) = MonitorRequest::new(what);
    let guard = hub.ticks.add(Box::new(asked));
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, answer).await;
    drop(guard);
    answer.ok()?.ok()
}

/// Metrics as OpenMetrics if the client accepts it, as Prometheus does, else in the older text format, which
/// all programs read.
async fn metrics(hub: &Hub, headers: &HeaderMap) -> Response {
    let mut accepts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let (format, kind) = match accepts.any(|value| value.contains(OPENMETRICS)) {
        true => {
            (MetricsFormat::OpenMetrics, format!("{OPENMETRICS}; version=1.0.0; charset=utf-8"))
        }
        false => (MetricsFormat::Prometheus, "text/plain; version=0.0.4; charset=utf-8".to_owned()),
    };
    match ask(hub, MonitorQuery::Metrics(format)).await {
        Some((_, text)) => answer(head(StatusCode::OK).header(CONTENT_TYPE, kind), text),
        None => text(StatusCode::SERVICE_UNAVAILABLE, "the domain cannot be read\n"),
    }
}

async fn health(hub: &Hub) -> Response {
    let (status, json) = match ask(hub, MonitorQuery::Health).await {
        Some((true, json)) => (StatusCode::OK, json),
        Some((false, json)) => (StatusCode::SERVICE_UNAVAILABLE, json),
        None => {
            let why = "{\"ok\": false, \"error\": \"the domain cannot be read\"}\n";
            (StatusCode::SERVICE_UNAVAILABLE, why.to_owned())
        }
    };
    answer(head(status).header(CONTENT_TYPE, "application/json"), json)
}

/// A file of the page, from the embedded table and not from a disk.
fn file(path: &str, headers: &HeaderMap) -> Response {
    let Some(file) = page::find(path) else {
        return text(StatusCode::NOT_FOUND, "page not found\n");
    };
    let cached = if file.is_for_ever { "public, max-age=31536000, immutable" } else { "no-cache" };
    let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let is_known = known.is_some_and(|known| known.split(',').any(|tag| tag.trim() == file.etag));
    let head = head(StatusCode::OK)
        .header(CONTENT_TYPE, file.content_type)
        .header(CACHE_CONTROL, cached)
        .header(ETAG, file.etag);
    match is_known {
        true => answer(head.status(StatusCode::NOT_MODIFIED), ""),
        false => answer(head, file.content),
    }
}
