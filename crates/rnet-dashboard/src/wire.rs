//! Message formats of page and server: docs/design/dashboard.md, section 2.

use serde::Deserialize;
use serde_json::{Value as Json, json};

/// Maximum length of a request, in bytes.
pub const MAX_REQUEST_LEN_BYTES: usize = 256 << 10;
/// Maximum length of a displayed message as JSON, in bytes.
pub const MAX_MESSAGE_JSON_LEN_BYTES: usize = 64 << 10;
/// Maximum size of an image, in pixels.
pub const MAX_IMAGE_PX: usize = 307_200;
/// Maximum number of points of a cloud.
pub const MAX_CLOUD_POINTS: usize = 20_000;
/// Maximum number of subscriptions of a page.
pub const MAX_SUBSCRIPTIONS: usize = 64;
/// Version of the protocol.
pub const PROTOCOL: u32 = 1;

/// Why a request is rejected.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub code: &'static str,
    pub message: String,
}

/// Result of a request: the fields of the answer in addition to `re` and `ok`.
pub type Answer = Result<Json, Refusal>;

impl Refusal {
    pub fn new(code: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into() }
    }

    pub fn bad(message: impl Into<String>) -> Refusal {
        Refusal::new("bad_request", message)
    }

    pub fn not_found(message: impl Into<String>) -> Refusal {
        Refusal::new("not_found", message)
    }

    pub fn failed(message: impl Into<String>) -> Refusal {
        Refusal::new("failed", message)
    }

    pub fn json(&self) -> Json {
        json!({"code": self.code, "message": self.message})
    }
}

impl From<rnet::Error> for Refusal {
    fn from(error: rnet::Error) -> Refusal {
        let code = match &error {
            rnet::Error::Timeout { .. } => "timed_out",
            rnet::Error::Cancelled { .. } => "cancelled",
            rnet::Error::BadName { .. } | rnet::Error::BadValue { .. } => "bad_request",
            _ => "failed",
        };
        Refusal::new(code, error.to_string())
    }
}

/// A request: its id, its operation, and the other fields.
#[derive(Debug, Deserialize)]
pub struct Request {
    pub id: u64,
    pub op: String,
    #[serde(flatten)]
    pub rest: serde_json::Map<String, Json>,
}

impl Request {
    /// # Errors
    /// Why it is invalid, with its id if that could be read.
    pub fn parse(text: &str) -> Result<Request, (Option<u64>, Refusal)> {
        let json: Json = serde_json::from_str(text)
            .map_err(|why| (None, Refusal::bad(format!("the request is not valid JSON: {why}"))))?;
        let id = json.get("id").and_then(Json::as_u64).filter(|id| (1..1 << 53).contains(id));
        let Some(id) = id else {
            let why = "a request needs \"id\", a number from 1 to 2^53 - 1";
            return Err((None, Refusal::bad(why)));
        };
        serde_json::from_value(json).map_err(|why| (Some(id), Refusal::bad(why.to_string())))
    }

    /// The fields of the operation.
    ///
    /// # Errors
    /// Which field is missing or invalid, as text.
    pub fn fields<T: for<'de> Deserialize<'de>>(&self) -> Result<T, Refusal> {
        fields_of(Json::Object(self.rest.clone()))
    }
}

/// The fields of a request.
pub fn fields_of<T: for<'de> Deserialize<'de>>(fields: Json) -> Result<T, Refusal> {
    serde_json::from_value(fields).map_err(|why| Refusal::bad(why.to_string()))
}

/// The answer to a request, as text.
pub fn answer(id: u64, answer: Answer) -> String {
    let json = match answer {
        Ok(Json::Object(mut fields)) => {
            fields.insert("re".to_owned(), id.into());
            fields.insert("ok".to_owned(), true.into());
            Json::Object(fields)
        }
        Ok(_) => json!({"re": id, "ok": true}),
        Err(refusal) => json!({"re": id, "ok": false, "error": refusal.json()}),
    };
    json.to_string()
}

/// A part of an answer that continues.
pub fn part(id: u64, word: &str, value: Json) -> String {
    json!({"re": id, "more": true, word: value}).to_string()
}

/// The header of a binary frame, padded so that the payload begins at a multiple of 4, and the payload.
pub fn binary(json: &str, payload: &[u8]) -> Vec<u8> {
    let padding = (4 - json.len() % 4) % 4;
    let len = json.len() + padding;
    let mut frame = Vec::with_capacity(4 + len + payload.len());
    frame.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes());
    frame.extend_from_slice(json.as_bytes());
    frame.resize(4 + len, b' ');
    frame.extend_from_slice(payload);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_of_binary_frames_are_aligned() {
        for json in ["{}", "{\"a\":1}", "{\"ab\":1}", "{\"abc\":1}", "{\"abcd\":1}"] {
            let frame = binary(json, b"data");
            let len = u32::from_le_bytes(frame[..4].try_into().unwrap()) as usize;
            assert_eq!((4 + len) % 4, 0);
            assert_eq!(&frame[4 + len..], b"data");
            let read: Json = serde_json::from_slice(&frame[4..4 + len]).unwrap();
            assert_eq!(read.to_string(), json);
        }
    }

    #[test]
    fn rejects_invalid_requests_with_reason() {
        assert!(Request::parse(r#"{"id": 1, "op": "unsub", "sub": 2}"#).is_ok());
        for (text, id) in [
            ("{", None),
            ("[]", None),
            (r#"{"op": "sub"}"#, None),
            (r#"{"id": 0, "op": "sub"}"#, None),
            (r#"{"id": -1, "op": "sub"}"#, None),
            (r#"{"id": 1.5, "op": "sub"}"#, None),
            (r#"{"id": 9007199254740992, "op": "sub"}"#, None),
            (r#"{"id": 7}"#, Some(7)),
            (r#"{"id": 7, "op": 1}"#, Some(7)),
        ] {
            let (found, refusal) = Request::parse(text).unwrap_err();
            assert_eq!((found, refusal.code), (id, "bad_request"), "{text}");
        }
    }
}
