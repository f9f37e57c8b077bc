//! `Node.log`: log lines for people. The methods that create them are in `rnet.log`.

use std::sync::Arc;

use pyo3::prelude::*;
use rnet::LogLevel;

use crate::errors::OrRaise;
use crate::node_core::NodeCore;

/// The log of a node, `Node.log`: text lines, on the topic `/log` and on stderr.
///
/// Logging does not raise errors and does not block. Subscribers that join later get the last 100 lines of
/// each node. Limits: 100 lines per second from one place in the source, and 1,000 from a node; suppressed
/// lines are counted and reported once a second. `args` are formatted into the text with `%`, as in
/// `logging`.
///
/// >>> arm = rnet.Node("arm")
/// >>> arm.log.info("the arm is at home")
/// >>> arm.log.warning("joint %d is at %.1f °C", 3, 71.5)
/// >>> arm.close()
#[pyclass(frozen, module = "rnet.log")]
pub(crate) struct Logger {
    shared: Arc<NodeCore>,
}

impl Logger {
    pub(crate) fn new(shared: Arc<NodeCore>) -> Logger {
        Logger { shared }
    }

    fn with<R: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&rnet::Logger) -> R + Send,
    ) -> PyResult<R> {
        // The first line opens a publisher.
        self.shared.with(py, |node| py.detach(|| act(node.log())))
    }
}

#[pymethods]
impl Logger {
    /// Whether lines of a level are logged.
    fn _is_enabled(&self, py: Python<'_>, level: &str) -> PyResult<bool> {
        let level: LogLevel = level.parse().or_raise(py)?;
        self.with(py, |log| log.is_enabled(level))
    }

    /// A line that code in a file has logged.
    fn _log_from(
        &self,
        py: Python<'_>,
        level: &str,
        text: &str,
        file: &str,
        line: u32,
    ) -> PyResult<()> {
        let level: LogLevel = level.parse().or_raise(py)?;
        self.with(py, |log| log.log_from(level, text, file, line))
    }

    /// Name of its node.
    #[getter]
    fn _node(&self) -> &str {
        &self.shared.name
    }

    /// Lowest level that is logged: "info" by default, or the level in RNET_LOG. One of "debug", "info",
    /// "warning", "error" and "fatal".
    #[getter]
    fn level(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.with(py, |log| log.level().name())
    }

    #[setter]
    fn set_level(&self, py: Python<'_>, level: &str) -> PyResult<()> {
        let level: LogLevel = level.parse().or_raise(py)?;
        self.with(py, |log| log.set_level(level))
    }

    /// Number of lines suppressed since the node was opened.
    #[getter]
    fn suppressed_count(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, rnet::Logger::suppressed_count)
    }

    /// Publishes a line of another logging library, regardless of the node's level, and without stderr; used
    /// by LogHandler.
    fn _publish(
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
        format!("<rnet.log.Logger of {}>", self.shared.name)
    }
}
