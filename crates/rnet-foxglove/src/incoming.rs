//! Parses client frames: JSON in text frames, and binary frames that begin with an operation code.
//!
//! Clients are not trusted: each length is checked, and an unknown operation is an error that names it. The
//! operation codes are those of the protocol ([docs/design/foxglove.md]).
//!
//! [docs/design/foxglove.md]: https://github.com/robot-net/robot-net/blob/main/docs/design/foxglove.md

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A JSON frame.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "op", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ClientRequest {
    Subscribe { subscriptions: Vec<Subscription> },
    Unsubscribe { subscription_ids: Vec<u32> },
    Advertise { channels: Vec<ClientChannel> },
    Unadvertise { channel_ids: Vec<u32> },
    GetParameters { parameter_names: Vec<String>, id: Option<String> },
    SetParameters { parameters: Vec<Parameter>, id: Option<String> },
    SubscribeParameterUpdates { parameter_names: Vec<String> },
    UnsubscribeParameterUpdates { parameter_names: Vec<String> },
    SubscribeConnectionGraph,
    UnsubscribeConnectionGraph,
    FetchAsset { uri: String, request_id: u32 },
}

/// A subscription; the client chooses its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subscription {
    pub id: u32,
    pub channel_id: u32,
}

/// A channel on which a client publishes; the client chooses its id.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientChannel {
    pub id: u32,
    pub topic: String,
    pub encoding: String,
    pub schema_name: String,
    pub schema: Option<String>,
    pub schema_encoding: Option<String>,
}

/// A parameter and its value; `None` if it does not exist or is to be reset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// A binary frame.
#[derive(Debug, PartialEq)]
pub enum BinaryFrame<'a> {
    /// A message on a channel of the client.
    Message {
        channel: u32,
        data: &'a [u8],
    },
    Call {
        service: u32,
        call: u32,
        encoding: &'a str,
        data: &'a [u8],
    },
    PlaybackControl(PlaybackControl),
}

/// A control request for the playback of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaybackControl {
    pub is_playing: bool,
    /// Speed factor.
    pub rate: f32,
    /// Time to seek to, in ns since 1970.
    pub seek_ns: Option<u64>,
    pub request: String,
}

/// Maximum length of a client's request id, in bytes.
const MAX_REQUEST_LEN_BYTES: usize = 256;

/// Parses a text frame.
///
/// # Errors
/// What is wrong with it, as text.
pub fn parse_text(text: &str) -> Result<ClientRequest, String> {
    serde_json::from_str(text).map_err(|error| {
        let op = serde_json::from_str::<Value>(text).ok();
        let op = op.as_ref().and_then(|value| value.get("op")).and_then(Value::as_str);
        match op {
            Some(op) => {
                format!("unknown operation {op:.40?}, or one of its fields is missing: {error}")
            }
            None => format!("a text frame must be a JSON object with an op: {error}"),
        }
    })
}

/// Parses a binary frame.
///
/// # Errors
/// What is wrong with it, as text.
pub fn parse_binary(bytes: &[u8]) -> Result<BinaryFrame<'_>, String> {
    let mut rest = FrameReader(bytes);
    match rest.u8()? {
        1 => Ok(BinaryFrame::Message { channel: rest.u32()?, data: rest.0 }),
        2 => {
            let (service, call) = (rest.u32()?, rest.u32()?);
            Ok(BinaryFrame::Call { service, call, encoding: rest.text()?, data: rest.0 })
        }
        3 => {
            let command = rest.u8()?;
            let rate = f32::from_le_bytes(rest.array()?);
            let (seeks, seek_ns) = (rest.u8()? != 0, u64::from_le_bytes(rest.array()?));
            let request = rest.text()?;
            if command > 1 {
                return Err(format!(
                    "unknown playback command {command}: use 0 (play) or 1 (pause)"
                ));
            }
            if !(rate.is_finite() && rate > 0.0) {
                return Err(format!("invalid playback speed {rate}"));
            }
            if request.len() > MAX_REQUEST_LEN_BYTES {
                let len = request.len();
                return Err(format!(
                    "a request id has {len} bytes, at most {MAX_REQUEST_LEN_BYTES} are allowed"
                ));
            }
            Ok(BinaryFrame::PlaybackControl(PlaybackControl {
                is_playing: command == 0,
                rate,
                seek_ns: seeks.then_some(seek_ns),
                request: request.to_owned(),
            }))
        }
        op => Err(format!("unknown binary operation {op}: use 1 to 3")),
    }
}

/// The unread bytes of a frame.
struct FrameReader<'a>(&'a [u8]);

impl<'a> FrameReader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or_else(|| {
            format!("the frame is too short: expected {len} more bytes, found {}", self.0.len())
        })?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        Ok(self.take(N)?.try_into().expect("take returns N bytes"))
    }

    fn u8(&mut self) -> Result<u8, String> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.array().map(u32::from_le_bytes)
    }

    /// A string, preceded by its length.
    fn text(&mut self) -> Result<&'a str, String> {
        let len = self.u32()?;
        let bytes = self.take(usize::try_from(len).unwrap_or(usize::MAX))?;
        std::str::from_utf8(bytes).map_err(|error| format!("a text is not UTF-8: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_binary_frames() {
        assert_eq!(
            parse_binary(&[1, 7, 0, 0, 0, 9]),
            Ok(BinaryFrame::Message { channel: 7, data: &[9] })
        );
        let call = [&[2][..], &[1, 0, 0, 0], &[2, 0, 0, 0], &[4, 0, 0, 0], b"json", b"{}"].concat();
        let read = BinaryFrame::Call { service: 1, call: 2, encoding: "json", data: b"{}" };
        assert_eq!(parse_binary(&call), Ok(read));
        let mut control = vec![3, 0];
        control.extend(2.0f32.to_le_bytes());
        control.push(1);
        control.extend(5u64.to_le_bytes());
        control.extend(1u32.to_le_bytes());
        control.extend(b"a");
        let read =
            PlaybackControl { is_playing: true, rate: 2.0, seek_ns: Some(5), request: "a".into() };
        assert_eq!(parse_binary(&control), Ok(BinaryFrame::PlaybackControl(read)));
        // Each truncated frame is invalid.
        for frames in [&call, &control] {
            for len in 0..frames.len() - 2 {
                let read = parse_binary(&frames[..len]);
                assert!(read.is_err() || frames[0] == 2 && len >= 17, "{len}: {read:?}");
            }
        }
        for (bytes, why) in [
            (&[][..], "too short"),
            (&[0], "unknown binary operation 0"),
            (&[255, 1], "unknown binary operation 255"),
            (&[2, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255], "expected 4294967295 more bytes"),
            (&[2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0xff], "UTF-8"),
            (&[3, 9, 0, 0, 128, 63, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "command 9"),
            (&[3, 0, 0, 0, 192, 127, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "speed NaN"),
        ] {
            let error = parse_binary(bytes).unwrap_err();
            assert!(error.contains(why), "{bytes:?}: {error}");
        }
    }

    #[test]
    fn parses_text_frames() {
        let text = r#"{"op":"subscribe","subscriptions":[{"id":0,"channelId":3}],"more":1}"#;
        let subscriptions = vec![Subscription { id: 0, channel_id: 3 }];
        assert_eq!(parse_text(text), Ok(ClientRequest::Subscribe { subscriptions }));
        let text = r#"{"op":"subscribeConnectionGraph"}"#;
        assert_eq!(parse_text(text), Ok(ClientRequest::SubscribeConnectionGraph));
        for (text, why) in [
            ("", "JSON object"),
            ("[]", "JSON object"),
            (r#"{"op":"format disk"}"#, "format disk"),
            (r#"{"op":"subscribe"}"#, "subscriptions"),
            (r#"{"op":"unsubscribe","subscriptionIds":[-1]}"#, "-1"),
        ] {
            let error = parse_text(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
