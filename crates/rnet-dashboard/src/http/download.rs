//! Download of recordings, streamed in chunks as fast as the client reads.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use tokio::task::spawn_blocking;

use super::Shared;
use crate::desk::recordings;

/// Concurrent downloads of all clients.
pub const MAX_DOWNLOADS: usize = 4;
const PART_LEN_BYTES: usize = 256 << 10;

/// Counts the chunks that a connection has read: the connection stays open while a download makes progress.
#[derive(Clone, Default)]
pub struct Taken(Arc<AtomicU64>);

impl Taken {
    pub fn parts(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

pub async fn download(
    State(shared): State<Arc<Shared>>,
    Extension(taken): Extension<Taken>,
    Path(name): Path<String>,
) -> Response {
    let Ok(place) = shared.downloads.clone().try_acquire_owned() else {
        let why =
            format!("{MAX_DOWNLOADS} downloads are running; try again when one has finished\n");
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    };
    let (hub, asked) = (shared.hub.clone(), name.clone());
    let opened = spawn_blocking(move || recordings::open(&hub.world, &asked)).await;
    let (file, len) = match opened {
        Ok(Ok(found)) => found,
        Ok(Err(refusal)) => {
            return (StatusCode::NOT_FOUND, format!("{}\n", refusal.message)).into_response();
        }
        Err(_) => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    };
    // The length is in the header already: data appended from now on is not sent.
    let parts = unfold((file.take(len), place), move |(mut file, place)| {
        let taken = taken.clone();
        async move {
            taken.0.fetch_add(1, Ordering::Relaxed);
            let read = spawn_blocking(move || {
                let mut part = vec![0; PART_LEN_BYTES];
                let read = file.read(&mut part);
                part.truncate(*read.as_ref().unwrap_or(&0));
                (read.map(|_| part), file)
            });
            let (part, file) = read.await.ok()?;
            match part {
                Ok(part) if part.is_empty() => None,
                part => Some((part, (file, place))),
            }
        }
    });
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_LENGTH, len.to_string()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    (headers, Body::from_stream(parts)).into_response()
}
