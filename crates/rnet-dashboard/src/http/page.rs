//! The files of the page, which are embedded in the program.

use hyper::StatusCode;
use hyper::header::CONTENT_TYPE;

use super::{Response, answer, head};

/// By path, sorted.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// A file with its headers.
pub struct File {
    pub content: &'static [u8],
    pub content_type: &'static str,
    pub etag: String,
    /// Whether it may be cached forever, because its name contains its hash.
    pub is_for_ever: bool,
}

/// The file of a path.
pub fn find(path: &str) -> Option<File> {
    let path = if path == "/" { "/index.html" } else { path };
    let (_, content) = FILES.iter().find(|(name, _)| *name == path)?;
    Some(File {
        content,
        content_type: type_of(path),
        etag: format!("\"{:016x}\"", fnv1a_64(content)),
        is_for_ever: path.starts_with("/assets/"),
    })
}

fn type_of(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// Distinguishes contents; collisions by an attacker are not a concern.
fn fnv1a_64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The form that asks for the token.
pub fn login(status: StatusCode, why: &str) -> Response {
    let text = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\">\
         <title>robot-net</title></head><body><main><h1>robot-net</h1><p>{why}</p>\
         <form method=\"post\" action=\"/login\"><label>Token <input type=\"password\" name=\"token\" required \
         autofocus autocomplete=\"current-password\"></label> <button>Open the dashboard</button></form></main></body></html>\n"
    );
    answer(head(status).header(CONTENT_TYPE, "text/html; charset=utf-8"), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_only_embedded_files() {
        for path in [
            "/../Cargo.toml",
            "/assets/../index.html",
            "//index.html",
            "/index.html/",
            "",
            "/%2e%2e/x",
        ] {
            assert!(find(path).is_none(), "{path}");
        }
        assert_eq!(type_of("/assets/a-1.js"), "text/javascript; charset=utf-8");
        assert_eq!(type_of("/a"), "application/octet-stream");
    }
}
