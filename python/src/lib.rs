//! The Python package `rnet`: converts between Python and crate `rnet`, where the logic lives.
//!
//! Two rules prevent deadlocks between Python threads and rnet's own threads:
//! - an operation that may wait, for a message, a lock or the end of a thread, runs without the GIL
//!   ([`wait`], [`drop_without_gil`]), and
//! - the GIL is not taken while holding a lock that threads wait for with the GIL held ([`fair_mutex`]).

mod batch;
mod buffer;
mod callback;
mod callback_errors;
mod calls;
mod codec;
mod commands;
mod compare;
mod drop_without_gil;
mod errors;
mod events;
mod export;
mod fair_mutex;
mod fork;
mod futex;
mod handle;
mod interpreter;
mod loan;
mod lock;
mod log;
mod members;
mod meta;
mod name;
mod node;
mod node_core;
mod param;
mod publisher;
mod qos;
mod reader;
mod receive;
mod recording;
mod resource;
mod sample;
mod schema;
mod state;
mod subscriber;
mod tasks;
mod timer;
mod wait;
mod wait_queue;
mod wait_set;

use pyo3::prelude::*;

/// Current time in ns of CLOCK_MONOTONIC: the clock of all message stamps, and of time.monotonic_ns().
#[pyfunction]
fn now_ns() -> u64 {
    rnet::now_ns()
}

/// Offset of the wall clock from now_ns() at this moment, as an rnet.events.WallOffset.
#[pyfunction]
fn wall_offset(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let rnet::WallOffset { offset_ns, uncertainty_ns } = rnet::wall_offset();
    py.import("rnet.events")?.getattr("WallOffset")?.call1((offset_ns, uncertainty_ns))
}

/// The compiled part of the package `rnet`; import that.
#[pymodule]
mod _rnet {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::{
        callback::report_exception,
        callback_errors::error_counter,
        calls::{
            ActionClient, ActionContext, Call, CallContext, Client, Goal, Job, JobContext, Puller,
            Pusher, Service,
        },
        commands::{Command, Driver},
        compare::compare_types,
        handle::CallbackHandle,
        interpreter::{close_in_time, is_closing},
        loan::Loan,
        log::Logger,
        node::Node,
        now_ns,
        param::Param,
        publisher::Publisher,
        recording::{RecordedMessages, RecordingReader},
        schema::{compile_file, compile_text, find_types, read_descriptor_set},
        state::{
            Entry, PyState, Transaction, Watch,
            remote::{PyRemoteState, PyReplica},
            too_many_conflicts,
        },
        subscriber::{Samples, Subscriber},
        tasks::Next,
        timer::{Rate, Timer},
        wait_set::WaitSet,
        wall_offset,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        crate::interpreter::close_at_exit(py)?;
        module.add("Sample", crate::sample::class(py)?)?;
        module.add("BUILTIN_FILES", rnet::schema::builtin_files().collect::<Vec<_>>())?;
        module.add("MAX_SCHEMA_LEN_BYTES", rnet::schema::limits::MAX_SCHEMA_LEN_BYTES)?;
        module.add("MAX_UPDATE_TRIES", rnet::limits::MAX_UPDATE_TRIES)?;
        module.add("ERROR_CODES", rnet::Error::CODES)?;
        module.add("LAYOUT_VERSION", rnet::LAYOUT_VERSION)?;
        module.add("VERSION", rnet::VERSION)
    }
}
