//! Many messages with one call: arrays of rows, each of which is a message.
//!
//! `rnet.batch` specifies the form of the arrays, and creates the arrays that the user gets. This module
//! fills and reads their memory, without the GIL.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use rnet::Error;

use crate::buffer::Bytes;
use crate::errors::raise;
use crate::publisher::{Inner, PublisherCore};
use crate::receive::SubscriberCore;
use crate::wait::WaitLimit;

/// The arguments of `recv_many`, as the user passed them: max, out, dtype, stamps.
pub(crate) type RecvManyArgs<'a, 'py> =
    (Option<i64>, Option<&'a Bound<'py, PyAny>>, Option<&'a Bound<'py, PyAny>>, bool);

/// The result of `rnet.batch.Rows.prepare_receive`: the array, number of rows to fill, bytes per row, whether
/// messages of another length are allowed, and the array of the stamps.
type BatchArray<'py> = (Bound<'py, PyAny>, usize, usize, bool, Option<Bound<'py, PyAny>>);

/// `Subscriber.recv_many`.
pub(crate) fn receive<'py>(
    core: &Arc<SubscriberCore>,
    rows: &Bound<'py, PyAny>,
    wait_limit: &WaitLimit,
    args: RecvManyArgs<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = rows.py();
    let (array, max, row_len, is_typed, times): BatchArray<'py> =
        rows.call_method1("prepare_receive", args)?.extract()?;
    let count = {
        let mut memory = Bytes::writable(&array)?;
        let mut stamps = times.as_ref().map(Bytes::writable).transpose()?;
        let mut filling = BatchFill {
            topic: core.topic(),
            rows: memory.as_mut_slice(),
            stamps: stamps.as_mut().map(Bytes::as_mut_slice),
            row_len,
            is_typed,
            max,
            count: 0,
        };
        let result = core.fill(py, wait_limit, &mut filling);
        result?;
        filling.count
    };
    rows.call_method1("finish_receive", (array, count, args.1, times))
}

/// Rows of an array that receive copies of messages.
struct BatchFill<'a> {
    topic: &'a str,
    rows: &'a mut [u8],
    /// One int64 per row: the send time.
    stamps: Option<&'a mut [u8]>,
    row_len: usize,
    /// Whether the rows have a type, which may be shorter or longer than the publisher's type. Of a longer
    /// message the prefix is read; a shorter one is extended with zeros.
    is_typed: bool,
    max: usize,
    count: usize,
}

const STAMP_LEN: usize = size_of::<i64>();

impl BatchFill<'_> {
    /// Copies a message; `false` if it has another length than a row and that is not allowed.
    fn put(&mut self, message: &[u8], sent_ns: u64) -> bool {
        if message.len() != self.row_len && !self.is_typed {
            return false;
        }
        let at = self.count * self.row_len;
        // `rnet.batch` has checked that the array has `max` rows. If another thread shrank it before its
        // buffer was exported, this line finds that. Shrinking it later is undetected: numpy does not count
        // exports, and the docs of `out` forbid it.
        let Some(row) = self.rows.get_mut(at..at + self.row_len) else { return false };
        let known = message.len().min(row.len());
        row[..known].copy_from_slice(&message[..known]);
        row[known..].fill(0);
        if let Some(stamps) = &mut self.stamps {
            let at = self.count * STAMP_LEN;
            if let Some(stamp) = stamps.get_mut(at..at + STAMP_LEN) {
                stamp.copy_from_slice(&sent_ns.to_ne_bytes());
            }
        }
        self.count += 1;
        true
    }

    /// The error for a message that was not taken.
    fn wrong_length(&self, message: &rnet::OwnedSample<[u8]>) -> Error {
        let (len, row_len) = (message.len(), self.row_len);
        let (seq, publisher) = (message.seq(), message.publisher());
        Error::BadValue {
            what: format!("message {seq} of publisher {publisher:#x} on {}", self.topic),
            why: format!(
                "it has {len} bytes, but a row of the array has {row_len}; it stays next in the queue: take \
                 it with recv()"
            ),
        }
    }
}

impl SubscriberCore {
    /// Fills rows: waits for the first message, and takes further ones that are available.
    fn fill(
        self: &Arc<Self>,
        py: Python<'_>,
        wait_limit: &WaitLimit,
        filling: &mut BatchFill<'_>,
    ) -> PyResult<()> {
        self.in_slices(wait_limit).run(py, |slice: Duration| {
            self.wait_with(slice, |inner, lookahead, left| {
                if let Some(sample) = lookahead.take() {
                    if filling.put(&sample, sample.sent_ns()) {
                        return Ok(());
                    }
                    let odd = filling.wrong_length(&sample);
                    *lookahead = Some(sample);
                    return Err(odd);
                }
                inner.recv_batch_timeout(filling.max, left, |sample| {
                    if filling.put(&sample, sample.sent_ns()) {
                        return ControlFlow::Continue(());
                    }
                    *lookahead = Some(sample.into_owned());
                    ControlFlow::Break(())
                })?;
                match lookahead {
                    Some(odd) if filling.count == 0 => Err(filling.wrong_length(odd)),
                    _ => Ok(()),
                }
            })
        })
    }
}

/// How long a batch is sent between two checks for signals, and without a turn for other senders.
const SEND_SLICE: Duration = Duration::from_millis(100);
/// Number of rows that are sent without waiting between two readings of the clock; one reading costs as much
/// as one row.
const ROWS_PER_CLOCK_CHECK: usize = 64;

/// `Publisher.send_many`.
pub(crate) fn send(
    core: &PublisherCore,
    rows: &Bound<'_, PyAny>,
    messages: &Bound<'_, PyAny>,
) -> PyResult<usize> {
    let py = rows.py();
    let (array, count, row_len): (Bound<'_, PyAny>, usize, usize) =
        rows.call_method1("prepare_send", (messages,))?.extract()?;
    let memory = Bytes::of(&array)?;
    let bytes = memory.as_slice();
    if bytes.len() != count * row_len {
        let what = format!("array for {}", core.topic());
        let why = format!("it has {} bytes, but {count} rows of {row_len} bytes", bytes.len());
        return Err(raise(py, &Error::BadValue { what, why }));
    }
    let sent = AtomicUsize::new(0);
    let result = core.with_detached(py, |inner: &mut Inner| {
        let began = Instant::now();
        let mut looks = false;
        // After a check for signals, the loop resumes at the next row.
        for number in sent.load(Ordering::Relaxed)..count {
            // If the publisher was closed meanwhile, the next attempt reports that.
            if core.is_closed() || looks && began.elapsed() >= SEND_SLICE {
                return Err(Error::Interrupted);
            }
            let row = &bytes[number * row_len..(number + 1) * row_len];
            let quick = inner.try_send(row)?;
            if !quick {
                inner.send(row)?;
            }
            sent.store(number + 1, Ordering::Relaxed);
            looks = !quick || number.is_multiple_of(ROWS_PER_CLOCK_CHECK);
        }
        Ok(())
    });
    let sent = sent.into_inner();
    match result {
        Ok(()) => Ok(sent),
        Err(error) => {
            // Built-in exceptions such as KeyboardInterrupt accept the attribute, too.
            error.value(py).setattr("sent", sent)?;
            Err(error)
        }
    }
}
