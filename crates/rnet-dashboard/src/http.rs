//! What is asked without a WebSocket.

mod download;
mod guard;
mod page;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{DefaultBodyLimit, Form, FromRequest, Request, State};
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    LOCATION, REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use rnet_monitor::MetricsFormat;
use serde::Deserialize;
use tokio::sync::Semaphore;

pub use download::{MAX_DOWNLOADS, Taken};
pub use guard::Guard;

use crate::hub::Hub;
use crate::socket::{self, Pages};
use crate::ticks::{Ask, Asked};
use crate::wire::MAX_REQUEST_LEN_BYTES;

/// Largest body of a request that is none of a WebSocket, in bytes.
const MAX_BODY_LEN_BYTES: usize = 4 << 10;
/// Longest time for figures.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// For the body of a login, which needs no token: who sends it slowly keeps a connection that others may need.
const LOGIN_WITHIN: Duration = Duration::from_secs(2);
/// Before a wrong token is told to be one.
const WRONG_TOKEN_PAUSE: Duration = Duration::from_millis(300);
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; \
                      manifest-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const OPENMETRICS: &str = "application/openmetrics-text";

/// What handlers share.
pub struct Shared {
    pub hub: Arc<Hub>,
    pub guard: Guard,
    pub pages: Arc<Pages>,
    pub downloads: Arc<Semaphore>,
}

/// All that the server answers.
pub fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/ws", get(upgrade))
        .route("/metrics", get(metrics))
        .route("/healthz", get(health))
        .route("/login", post(login))
        .route("/recordings/{name}", get(download::download))
        .fallback(get(file))
        .layer(DefaultBodyLimit::max(MAX_BODY_LEN_BYTES))
        .layer(from_fn_with_state(shared.clone(), guarded))
        .with_state(shared)
}

/// Refuses who has to be kept out, and says with each answer what browsers may do with it.
async fn guarded(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let checked = shared.guard.check(request.headers(), path == "/ws");
    let mut response = match checked {
        Err((status, why)) => (status, format!("{why}\n")).into_response(),
        Ok(()) if shared.guard.knows(request.headers()) || path == "/login" => {
            next.run(request).await
        }
        Ok(()) => match token_of(request.uri()) {
            Some(token) => log_in(&shared, &token).await,
            None if path == "/" => page::login(""),
            None => (StatusCode::UNAUTHORIZED, "a token is needed\n").into_response(),
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

/// The token of a link, which only the page itself takes.
fn token_of(uri: &Uri) -> Option<String> {
    let query = uri.query().filter(|_| uri.path() == "/")?;
    query.split('&').find_map(|pair| pair.strip_prefix("token=")).map(str::to_owned)
}

#[derive(Deserialize)]
struct Login {
    token: String,
}

async fn login(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let form = Form::<Login>::from_request(request, &());
    match tokio::time::timeout(LOGIN_WITHIN, form).await {
        Ok(Ok(Form(form))) => log_in(&shared, form.token.trim()).await,
        Ok(Err(why)) => why.into_response(),
        Err(_) => {
            let close = [(CONNECTION, "close")];
            (StatusCode::REQUEST_TIMEOUT, close, "the token did not come in time\n").into_response()
        }
    }
}

async fn log_in(shared: &Shared, token: &str) -> Response {
    match shared.guard.session(token) {
        Some(cookie) => {
            let to = [(LOCATION, "/".to_owned()), (SET_COOKIE, cookie)];
            (StatusCode::SEE_OTHER, to).into_response()
        }
        None => {
            tokio::time::sleep(WRONG_TOKEN_PAUSE).await;
            page::login("This is not the token.")
        }
    }
}

async fn upgrade(State(shared): State<Arc<Shared>>, upgrade: WebSocketUpgrade) -> Response {
    let Some(place) = shared.pages.take() else {
        let why = format!("{} pages are connected already; close one\n", socket::MAX_PAGES);
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    };
    let hub = shared.hub.clone();
    let pages = shared.pages.clone();
    upgrade
        .max_message_size(MAX_REQUEST_LEN_BYTES)
        .max_frame_size(MAX_REQUEST_LEN_BYTES)
        .on_upgrade(move |stream| socket::serve(hub, pages, stream, place))
}

async fn ask(hub: &Hub, what: Ask) -> Option<(bool, String)> {
    let (asked, answer) = Asked::new(what);
    let wish = hub.ticks.add(Box::new(asked));
    let answer = tokio::time::timeout(ANSWER_WITHIN, answer).await;
    drop(wish);
    answer.ok()?.ok()
}

/// OpenMetrics for who asks for it, as Prometheus does, and else the older text, which all programs read.
async fn metrics(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let accepts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let (format, told) = match accepts.into_iter().any(|value| value.contains(OPENMETRICS)) {
        true => {
            (MetricsFormat::OpenMetrics, format!("{OPENMETRICS}; version=1.0.0; charset=utf-8"))
        }
        false => (MetricsFormat::Prometheus, "text/plain; version=0.0.4; charset=utf-8".to_owned()),
    };
    match ask(&shared.hub, Ask::Metrics(format)).await {
        Some((_, text)) => ([(CONTENT_TYPE, told)], text).into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "the domain cannot be read\n").into_response(),
    }
}

async fn health(State(shared): State<Arc<Shared>>) -> Response {
    let json = [(CONTENT_TYPE, "application/json")];
    match ask(&shared.hub, Ask::Health).await {
        Some((true, text)) => (json, text).into_response(),
        Some((false, text)) => (StatusCode::SERVICE_UNAVAILABLE, json, text).into_response(),
        None => {
            let why = "{\"ok\": false, \"error\": \"the domain cannot be read\"}\n";
            (StatusCode::SERVICE_UNAVAILABLE, json, why).into_response()
        }
    }
}

/// A file of the page, found in a table and not on a disk.
async fn file(uri: Uri, headers: HeaderMap) -> Response {
    let Some(file) = page::find(uri.path()) else {
        return (StatusCode::NOT_FOUND, "there is no such page\n").into_response();
    };
    let cached = if file.is_for_ever { "public, max-age=31536000, immutable" } else { "no-cache" };
    let told = [
        (CONTENT_TYPE, file.content_type.to_owned()),
        (CACHE_CONTROL, cached.to_owned()),
        (ETAG, file.etag.clone()),
    ];
    let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    if known.is_some_and(|known| known.split(',').any(|tag| tag.trim() == file.etag)) {
        return (StatusCode::NOT_MODIFIED, told).into_response();
    }
    (told, file.content).into_response()
}
