//! A nats-server of our own, on a port that it chooses.

use bench_harness::child::dies_with_its_parent;
use bench_harness::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const WAIT_LIMIT: Duration = Duration::from_secs(5);

/// A running server; dropping it stops it.
pub(crate) struct NatsServer {
    process: Child,
    dir: PathBuf,
    /// Where clients connect to.
    pub(crate) url: String,
}

impl NatsServer {
    pub(crate) fn start() -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let program = find()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("study3-nats-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir)?;
        // Port -1 lets the server choose; it writes the port to a file.
        let mut command = Command::new(&program);
        command.args(["-a", "127.0.0.1", "-p", "-1", "--ports_file_dir"]).arg(&dir);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // A benchmark that is killed leaves no server.
        dies_with_its_parent(&mut command);
        let process =
            command.spawn().map_err(|e| Error::new(format!("{}: {e}", program.display())))?;
        let mut server = Self { process, dir, url: String::new() };
        let start = Instant::now();
        loop {
            if let Some(url) = url(&server.dir) {
                server.url = url;
                return Ok(server);
            }
            if let Some(status) = server.process.try_wait()? {
                return Err(Error::new(format!("{} ended at once: {status}", program.display())));
            }
            if start.elapsed() > WAIT_LIMIT {
                return Err(Error::new(format!("{} names no port", program.display())));
            }
            std::thread::sleep(Duration::from_millis(5)); // sleep: a file has no condition to wait on
        }
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        // It may be gone already; then there is nothing to end.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// The server named by the environment, installed by bench/, or in the system.
fn find() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("NATS_SERVER") {
        let named = PathBuf::from(named);
        return match named.is_file() {
            true => Ok(named),
            false => Err(Error::new(format!("NATS_SERVER is {}: no such file", named.display()))),
        };
    }
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools/bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::iter::once(installed)
        .chain(std::env::split_paths(&path))
        .map(|dir| dir.join("nats-server"))
        .find(|program| program.is_file())
        .ok_or_else(|| {
            Error::new(
                "nats-server was not found in bench/.tools/bin or PATH, and NATS_SERVER does not \
                 name one: go install github.com/nats-io/nats-server/v2@latest",
            )
        })
}

/// The first client address in the server's ports file, once it is there and whole.
fn url(dir: &Path) -> Option<String> {
    let file = std::fs::read_dir(dir)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|e| e == "ports"))?;
    let ports: serde_json::Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    Some(ports["nats"][0].as_str()?.to_owned())
}
