//! Checks that a pool can hold the history that late joiners are promised.

use rnet_core::{
    Error, MAX_CHUNKS_PER_CHANNEL, MAX_INLINE_LEN_BYTES, PublisherQos, Result, TypeDesc,
};

use super::size_for;

/// Checks that a pool with these settings can hold the history for late joiners and the message that is being
/// built, if the type defines the length of messages.
///
/// # Errors
/// `BadQos` with an empty topic; the error states the missing bytes or chunks.
pub(crate) fn check_history(qos: &PublisherQos, type_desc: &TypeDesc) -> Result<()> {
    let len = match type_desc {
        TypeDesc::Plain(plain) if !plain.tail => plain.size,
        _ => return Ok(()),
    };
    let depth = qos.history();
    if depth == 0 || len <= MAX_INLINE_LEN_BYTES {
        return Ok(());
    }
    let bad = |why| Err(Error::BadQos { topic: String::new(), why });
    let most = MAX_CHUNKS_PER_CHANNEL as u64 - 1;
    if depth > most {
        return bad(format!(
            "transient_local keeps {depth} messages of {len} bytes; of messages longer \
             than {MAX_INLINE_LEN_BYTES} bytes it can keep {most}: keep fewer"
        ));
    }
    let needed = size_for(len).saturating_mul(depth + 1);
    let limit = qos.pool_limit_bytes;
    if needed > limit {
        return bad(format!(
            "transient_local keeps {depth} messages of {len} bytes; with the next message the pool \
             needs {needed} bytes, but pool_limit_bytes is {limit}: raise it, or keep fewer"
        ));
    }
    Ok(())
}
