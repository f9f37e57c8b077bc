//! Download of recordings, streamed in chunks as fast as the client reads.

use std::io::{ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::stream::unfold;
use hyper::StatusCode;
use hyper::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use rnet_access::User;
use tokio::task::spawn_blocking;

use super::{Body, Response, Shared, answer, head, text};
use crate::operations::recordings;

/// Concurrent downloads of all clients.
pub const MAX_DOWNLOADS: usize = 4;
const CHUNK_LEN_BYTES: usize = 256 << 10;

/// Counts the chunks that a connection has read: the connection stays open while a download makes progress.
#[derive(Clone, Default)]
pub struct Progress(Arc<AtomicU64>);

impl Progress {
    pub fn chunks(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Sends a recording, until the user's token ends.
pub async fn download(shared: &Shared, progress: &Progress, user: User, name: String) -> Response {
    let Ok(place) = shared.downloads.clone().try_acquire_owned() else {
        let why =
            format!("{MAX_DOWNLOADS} downloads are running; try again when one has finished\n");
        return text(StatusCode::SERVICE_UNAVAILABLE, why);
    };
    let (hub, asked) = (shared.hub.clone(), name.clone());
    let opened = spawn_blocking(move || recordings::open(&hub.app, &asked)).await;
    let (file, len) = match opened {
        Ok(Ok(found)) => found,
        Ok(Err(refusal)) => {
            return text(StatusCode::NOT_FOUND, format!("{}\n", refusal.message));
        }
        Err(_) => return text(StatusCode::INTERNAL_SERVER_ERROR, ""),
    };
    // The length is in the header already: data appended from now on is not sent.
    let progress = progress.clone();
    let access = shared.guard.access.clone();
    let chunks = unfold((file.take(len), place), move |(mut file, place)| {
        let (progress, is_current) = (progress.clone(), access.is_current(&user));
        async move {
            if !is_current {
                return Some((Err(ErrorKind::PermissionDenied.into()), (file, place)));
            }
            progress.0.fetch_add(1, Ordering::Relaxed);
            let read = spawn_blocking(move || {
                let mut chunk = vec![0; CHUNK_LEN_BYTES];
                let read = file.read(&mut chunk);
                chunk.truncate(*read.as_ref().unwrap_or(&0));
                (read.map(|_| chunk), file)
            });
            let (chunk, file) = read.await.ok()?;
            match chunk {
                Ok(chunk) if chunk.is_empty() => None,
                chunk => Some((chunk.map(Into::into), (file, place))),
            }
        }
    });
    let head = head(StatusCode::OK)
        .header(CONTENT_TYPE, "application/octet-stream")
        .header(CONTENT_LENGTH, len)
        .header(CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\""));
    answer(head, Body::Chunks(Box::pin(chunks)))
}
