//! What a pool must be able to hold so that late joiners get what they are promised.

use rnet_core::{
    Error, MAX_CHUNKS_PER_CHANNEL, MAX_INLINE_LEN_BYTES, PublisherQos, Result, TypeDesc,
};

use super::size_for;

/// Checks that a pool of these settings can hold what late joiners are promised, and the message
/// that is being built, where the type says how long messages are.
///
/// # Errors
/// `BadQos` with an empty topic, naming the bytes or the chunks that are missing.
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
