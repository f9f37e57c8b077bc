//! The names of what a comparison makes, and which of it a killed comparison left.

use std::ffi::OsStr;
use std::path::Path;

/// How the names begin; then come the process id of the comparison and the number of the run.
pub const NAME: &str = "rnet-bench-";

/// Whether a name is that of a comparison which has ended.
pub fn is_left_behind(name: &OsStr) -> bool {
    let pid = name.to_str().and_then(|n| n.strip_prefix(NAME)?.split('-').next());
    pid.is_some_and(|pid| pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists())
}
