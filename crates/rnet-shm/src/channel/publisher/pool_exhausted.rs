//! The error of a publisher that has no memory for a large message.

use rnet_core::{Error, MAX_CHUNKS_PER_CHANNEL};

use super::Writer;
use crate::channel::pool::{GrowthLimit, PoolExhausted, size_for};
use crate::os::files::create_error;

impl Writer {
    /// The error for a message of `len` bytes: which limit was reached, and what to do.
    #[cold]
    pub(super) fn exhausted_error(&self, len: usize, exhausted: PoolExhausted) -> Error {
        let PoolExhausted { growth_limit, for_history_bytes } = exhausted;
        let needed_bytes = for_history_bytes.unwrap_or(size_for(len));
        let (loaned, chunks) = (self.pool.loaned(), self.pool.len());
        let others = chunks - loaned;
        let limit_bytes = self.qos.pool_limit_bytes;
        let history = for_history_bytes.map(|_| {
            format!(
                "transient_local keeps the last {} messages, and this one of {len} bytes does not fit \
                 beside them ({loaned} of {chunks} chunks are on loan)",
                self.history
            )
        });
        match (growth_limit, history) {
            (GrowthLimit::Limit, history) => {
                let why = match history {
                    Some(history) => {
                        format!("{history}; raise the publisher's pool_limit_bytes, or keep fewer")
                    }
                    None if needed_bytes > limit_bytes => {
                        "the message alone is larger than the publisher's pool_limit_bytes; raise it"
                            .to_owned()
                    }
                    None => format!(
                        "the publisher's pool_limit_bytes is reached: {loaned} of its chunks are on loan \
                         and {others} hold samples that subscribers or transient_local keep; return \
                         loans, drop samples or raise the limit"
                    ),
                };
                Error::OutOfMemory { topic: self.topic.to_string(), needed_bytes, limit_bytes, why }
            }
            (GrowthLimit::TooMany, history) => Error::LimitReached {
                what: format!("large messages of {} in use at a time", self.topic),
                limit: MAX_CHUNKS_PER_CHANNEL,
                hint: match history {
                    Some(history) => format!("{history}: keep fewer, or return loans"),
                    None => "return loans, or drop samples in the subscribers".to_owned(),
                },
            },
            (GrowthLimit::System(errno), history) => {
                let mut error =
                    create_error(Some(&self.topic), &self.pool.next_path(), needed_bytes, errno);
                let (Error::OutOfMemory { why: text, .. } | Error::LimitReached { hint: text, .. }) =
                    &mut error
                else {
                    return error;
                };
                if let Some(history) = history {
                    *text += &format!("; {history}, so keep fewer");
                }
                error
            }
        }
    }
}
