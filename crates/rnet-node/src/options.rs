//! Checks and conversions that endpoints share.

use std::time::{Duration, Instant};

use rnet_core::{Error, MAX_ENDPOINTS_PER_PROXY, Result};

/// Rejects a number of endpoints that peers would reject.
pub fn check_endpoint_count(endpoint_count: u32) -> Result<()> {
    if (1..=MAX_ENDPOINTS_PER_PROXY).contains(&endpoint_count) {
        return Ok(());
    }
    let why = format!("it is {endpoint_count}; it must be 1 to {MAX_ENDPOINTS_PER_PROXY}");
    Err(Error::bad_value("endpoints of a proxy", why))
}

/// The deadline of a timeout; `None` waits without a limit.
pub fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|t| Instant::now().checked_add(t))
}
