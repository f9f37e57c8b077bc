//! The Python package `rnet`: converts between Python and crate `rnet`, where the logic lives.
//!
//! Two rules keep Python threads and rnet's own from waiting for each other in a circle:
//! - whatever may wait, be it for a message, a lock or a thread that ends, is done without the
//!   GIL ([`wait`], [`release`]), and
//! - the GIL is not taken with a lock held that is waited for with the GIL held ([`fair`]).

mod batch;
mod buffer;
mod callback;
mod calls;
mod codec;
mod commands;
mod compare;
mod errors;
mod events;
mod export;
mod fair;
mod fork;
mod futex;
mod gate;
mod handle;
mod held;
mod loan;
mod log;
mod members;
mod merge;
mod meta;
mod name;
mod node;
mod param;
mod publisher;
mod qos;
mod raised;
mod reader;
mod receive;
mod recording;
mod release;
mod sample;
mod schema;
mod shared;
mod state;
mod subscriber;
mod tasks;
mod timer;
mod together;
mod wait;
mod waiters;
mod waitset;

use pyo3::prelude::*;

/// Now, in ns of CLOCK_MONOTONIC: the clock of all message stamps, and of time.monotonic_ns().
#[pyfunction]
fn now_ns() -> u64 {
    rnet::now_ns()
}

/// How far the wall clock is ahead of now_ns() at this moment, as an rnet.WallOffset.
#[pyfunction]
fn wall_offset(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let rnet::WallOffset { offset_ns, uncertainty_ns } = rnet::wall_offset();
    py.import("rnet.events")?.getattr("WallOffset")?.call1((offset_ns, uncertainty_ns))
}

/// The compiled part of the package `rnet`; import that.
#[pymodule]
fn _rnet(py: Python<'_>, module: &Bound<'_, PyModule>) -> PyResult<()> {
    gate::close_at_exit(py)?;
    module.add_class::<node::Node>()?;
    module.add_class::<publisher::Publisher>()?;
    module.add_class::<loan::Loan>()?;
    module.add_class::<subscriber::Subscriber>()?;
    module.add_class::<subscriber::Samples>()?;
    module.add_class::<merge::Merge>()?;
    module.add_class::<tasks::Next>()?;
    module.add_class::<param::Param>()?;
    module.add_class::<timer::Timer>()?;
    module.add_class::<log::Logger>()?;
    module.add_class::<handle::CallbackHandle>()?;
    module.add_class::<timer::Rate>()?;
    module.add_class::<waitset::WaitSet>()?;
    module.add_class::<recording::RecordingReader>()?;
    module.add_class::<recording::RecordedMessages>()?;
    state::add_classes(module)?;
    calls::add_classes(module)?;
    commands::add_classes(module)?;
    module.add("Sample", sample::class(py)?)?;
    module.add_function(wrap_pyfunction!(now_ns, module)?)?;
    module.add_function(wrap_pyfunction!(wall_offset, module)?)?;
    module.add_function(wrap_pyfunction!(callback::report_exception, module)?)?;
    module.add_function(wrap_pyfunction!(gate::is_closing, module)?)?;
    module.add_function(wrap_pyfunction!(gate::close_in_time, module)?)?;
    module.add_function(wrap_pyfunction!(raised::error_counter, module)?)?;
    module.add_function(wrap_pyfunction!(compare::compare_types, module)?)?;
    module.add_function(wrap_pyfunction!(schema::compile_file, module)?)?;
    module.add_function(wrap_pyfunction!(schema::compile_text, module)?)?;
    module.add_function(wrap_pyfunction!(schema::find_types, module)?)?;
    module.add_function(wrap_pyfunction!(schema::read_descriptor_set, module)?)?;
    module.add("BUILTIN_FILES", rnet::schema::builtin_files().collect::<Vec<_>>())?;
    module.add("MAX_SCHEMA_LEN_BYTES", rnet::schema::limits::MAX_SCHEMA_LEN_BYTES)?;
    module.add("ERROR_CODES", rnet::Error::CODES)?;
    module.add("LAYOUT_VERSION", rnet::LAYOUT_VERSION)?;
    module.add("VERSION", rnet::VERSION)?;
    Ok(())
}
