//! Limits how often the network of a host is reopened because of another host. Otherwise, a host that
//! answers on one lane only, by a fault or on purpose, would have each link of this host replaced within
//! seconds.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// In the domain's directory: the time of the last reopening, in ns since boot. A restarted link is another
/// process.
const FILE: &str = "link-reopened";
const PERIOD: Duration = Duration::from_secs(300);

/// Whether reopening is allowed now; if so, records it.
pub fn may_reopen(domain: &Path, boot_ns: u64) -> bool {
    let path = domain.join(FILE);
    let last = fs::read_to_string(&path).ok().and_then(|text| text.parse::<u64>().ok());
    // A time in the future is a corrupt entry.
    let is_recent = |last: u64| {
        boot_ns.checked_sub(last).is_some_and(|ago| u128::from(ago) < PERIOD.as_nanos())
    };
    if last.is_some_and(is_recent) {
        return false;
    }
    // If the file cannot be written, nothing else works either.
    fs::write(path, boot_ns.to_string()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reopening_is_allowed_once_per_interval() {
        let dir = std::env::temp_dir().join(format!("rnet-reopen-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let period = PERIOD.as_nanos() as u64;
        let boot_ns = 10 * period;
        assert!(may_reopen(&dir, boot_ns));
        assert!(!may_reopen(&dir, boot_ns + 1));
        assert!(!may_reopen(&dir, boot_ns + period - 1));
        assert!(may_reopen(&dir, boot_ns + period));
        for scribbled in ["", "nonsense", "18446744073709551615"] {
            fs::write(dir.join(FILE), scribbled).unwrap();
            assert!(may_reopen(&dir, boot_ns), "{scribbled:?}");
        }
        fs::remove_dir_all(&dir).unwrap();
        assert!(!may_reopen(&dir, boot_ns));
    }
}
