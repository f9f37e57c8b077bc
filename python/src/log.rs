//! `Node.log`: lines for people.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use rnet::LogLevel;

use crate::errors::OrRaise;
use crate::release::release;
use crate::shared::NodeShared;

/// The log of a node, `Node.log`: lines for people, on the topic `/log` and on stderr.
///
/// Logging raises nothing for what happens to the line, and waits for nobody. Late joiners get the last 100 lines
/// of each node. Of one place in the source 100 lines per second go out, of a node 1,000; the others are counted,
/// and once a second a line says how many they were. `args` are put into the text by `%`, as `logging` does it.
///
/// >>> arm = rnet.Node("arm")
/// >>> arm.log.info("the arm is at home")
/// >>> arm.log.warning("joint %d is at %.1f °C", 3, 71.5)
/// >>> arm.close()
#[pyclass(frozen, module = "rnet")]
pub(crate) struct Logger {
    shared: Arc<NodeShared>,
}

impl Logger {
    pub(crate) fn new(shared: Arc<NodeShared>) -> Logger {
        Logger { shared }
    }

    fn with<R: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&rnet::Logger) -> R + Send,
    ) -> PyResult<R> {
        let node = self.shared.node().or_raise(py)?;
        // The first line opens a publisher.
        let result = py.detach(|| act(node.log()));
        release(node);
        Ok(result)
    }

    /// What was called from Python, by which line of it.
    fn log(
        &self,
        level: LogLevel,
        text: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
    ) -> PyResult<()> {
        let py = text.py();
        let Ok(enabled) = self.with(py, |log| log.is_enabled(level)) else {
            let text = formatted(text, args);
            eprintln!("[{}] [{}]: {text}", level.name().to_uppercase(), self.shared.name);
            return Ok(());
        };
        if !enabled {
            return Ok(());
        }
        let text = formatted(text, args);
        let frame = py.import("sys")?.call_method1("_getframe", (0,))?;
        let file: String = frame.getattr("f_code")?.getattr("co_filename")?.extract()?;
        let line: u32 = frame.getattr("f_lineno")?.extract()?;
        self.with(py, |log| log.log_from(level, &text, &file, line))
    }
}

/// A line that cannot be made as it was meant says why: to log ends no program.
fn formatted(text: &Bound<'_, PyAny>, args: &Bound<'_, PyTuple>) -> String {
    let make = || -> PyResult<String> {
        let text = text.str()?;
        let text = if args.is_empty() { text.into_any() } else { text.rem(args)? };
        // A lone surrogate is no text.
        Ok(text.str()?.to_string_lossy().into_owned())
    };
    make().unwrap_or_else(|why| {
        let shown =
            |object: &Bound<'_, PyAny>| object.repr().map_or_else(|_| "?".to_owned(), lossy);
        match args.is_empty() {
            true => format!("a text that cannot be shown ({why})"),
            false => format!("{} % {} ({why})", shown(text), shown(args.as_any())),
        }
    })
}

fn lossy(text: Bound<'_, PyString>) -> String {
    text.to_string_lossy().into_owned()
}

#[pymethods]
impl Logger {
    /// A line for who wrote the program.
    #[pyo3(signature = (text, /, *args))]
    fn debug(&self, text: &Bound<'_, PyAny>, args: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.log(LogLevel::Debug, text, args)
    }

    /// A line that says what is as expected.
    #[pyo3(signature = (text, /, *args))]
    fn info(&self, text: &Bound<'_, PyAny>, args: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.log(LogLevel::Info, text, args)
    }

    /// A line that says what is not as expected, while the work goes on.
    #[pyo3(signature = (text, /, *args))]
    fn warning(&self, text: &Bound<'_, PyAny>, args: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.log(LogLevel::Warning, text, args)
    }

    /// The same, as rclpy calls it.
    #[pyo3(signature = (text, /, *args))]
    fn warn(&self, text: &Bound<'_, PyAny>, args: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.log(LogLevel::Warning, text, args)
    }

    /// A line that says what could not be done.
    #[pyo3(signature = (text, /, *args))]
    fn error(&self, text: &Bound<'_, PyAny>, args: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.log(LogLevel::Error, text, args)
    }

    /// A line that says why the program ends; to end it is for the caller.
    #[pyo3(signature = (text, /, *args))]
    fn fatal(&self, text: &Bound<'_, PyAny>, args: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.log(LogLevel::Fatal, text, args)
    }

    /// Lines below it are dropped: "info" at first, or what RNET_LOG says. One of "debug", "info", "warning",
    /// "error" and "fatal".
    #[getter]
    fn level(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.with(py, |log| log.level().name())
    }

    #[setter]
    fn set_level(&self, py: Python<'_>, level: &str) -> PyResult<()> {
        let level: LogLevel = level.parse().or_raise(py)?;
        self.with(py, |log| log.set_level(level))
    }

    /// How many lines were held back since the node was opened.
    #[getter]
    fn held_back(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, rnet::Logger::held_back)
    }

    /// Publishes a line of another logging library, whatever the node's level, and without stderr; LogHandler does
    /// this.
    fn publish(
        &self,
        py: Python<'_>,
        level: &str,
        text: &str,
        file: &str,
        line: u32,
    ) -> PyResult<()> {
        let level: LogLevel = level.parse().or_raise(py)?;
        self.with(py, |log| log.publish(level, text, file, line))
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Logger of {}>", self.shared.name)
    }
}
