//! Bodies of answers, and forms in requests.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use hyper::body::{Body as HttpBody, Bytes, Frame, Incoming, SizeHint};

/// Chunks that are read as fast as the client receives them.
pub type Chunks = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// The body of an answer.
pub enum Body {
    Full(Bytes),
    Chunks(Chunks),
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Body {
        Body::Full(bytes.into())
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Body::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Body::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Body::Chunks(chunks) => {
                chunks.as_mut().poll_next(cx).map(|chunk| chunk.map(|read| read.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Full(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Body::Chunks(_) => SizeHint::default(),
        }
    }
}

/// Reads the body of a request; `Ok(None)` if it exceeds `max_len_bytes`.
///
/// # Errors
/// The connection ended within the body.
pub async fn read(mut body: Incoming, max_len_bytes: usize) -> hyper::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        if let Ok(data) = frame?.into_data() {
            if bytes.len() + data.len() > max_len_bytes {
                return Ok(None);
            }
            bytes.extend_from_slice(&data);
        }
    }
    Ok(Some(bytes))
}

/// The value of a field of a form (`application/x-www-form-urlencoded`).
pub fn form_field(form: &[u8], name: &str) -> Option<String> {
    let form = String::from_utf8_lossy(form).replace('+', " ");
    let mut fields = form.split('&').filter_map(|field| field.split_once('='));
    let (_, value) = fields.find(|(key, _)| percent_decode(key) == name)?;
    Some(percent_decode(value))
}

/// Decodes `%XX`. Other uses of `%` stay as they are, and bytes that are not UTF-8 become U+FFFD.
pub fn percent_decode(text: &str) -> String {
    let text = text.as_bytes();
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let (mut decoded, mut at) = (Vec::with_capacity(text.len()), 0);
    while let Some(byte) = text.get(at) {
        let (byte, len) = match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => ((high * 16 + low) as u8, 3),
            _ => (*byte, 1),
        };
        decoded.push(byte);
        at += len;
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_forms_are_decoded() {
        let form = b"a=1&token=x%2By+%25z%C3%A9&token=2&b";
        assert_eq!(form_field(form, "token").as_deref(), Some("x+y %z\u{e9}"));
        assert_eq!(form_field(b"%74oken=", "token").as_deref(), Some(""));
        for form in [&b""[..], b"token", b"xtoken=1", b"\xff=1"] {
            assert_eq!(form_field(form, "token"), None, "{form:?}");
        }
        for (text, decoded) in [("%", "%"), ("%4", "%4"), ("%+1", "%+1"), ("%zz%2f", "%zz/")] {
            assert_eq!(percent_decode(text), decoded);
        }
        assert_eq!(percent_decode("%ff"), "\u{fffd}");
    }
}
