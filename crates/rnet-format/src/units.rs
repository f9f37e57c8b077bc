//! Numbers with units, to and from text.

use std::time::Duration;

/// `12.3 us`: a latency.
pub fn latency(ns: u64) -> String {
    let ns_f = ns as f64;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", ns_f / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns_f / 1e6),
        _ => format!("{:.2} s", ns_f / 1e9),
    }
}

/// `-3.4 ms ± 600.0 us`: the offset of a clock, and its uncertainty.
pub fn offset(ns: i64, uncertain_ns: Option<u64>) -> String {
    let sign = if ns < 0 { '-' } else { '+' };
    let about = uncertain_ns.map_or_else(|| "?".to_owned(), latency);
    let ns = ns.unsigned_abs();
    // Hosts that were started on different days.
    let off = if ns < 60_000_000_000 { latency(ns) } else { uptime(Duration::from_nanos(ns)) };
    format!("{sign}{off} ± {about}")
}

/// `1.23 MB`: bytes, in powers of 1000 as ROS 2 prints them.
pub fn bytes(n: f64) -> String {
    match n {
        n if n < 1e3 => format!("{n:.0} B"),
        n if n < 1e6 => format!("{:.2} KB", n / 1e3),
        n if n < 1e9 => format!("{:.2} MB", n / 1e6),
        _ => format!("{:.2} GB", n / 1e9),
    }
}

/// `3 d 4 h`, `5 min 6 s`: the two largest units.
pub fn uptime(time: Duration) -> String {
    let s = time.as_secs();
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        3600..86400 => format!("{} h {} min", s / 3600, s / 60 % 60),
        _ => format!("{} d {} h", s / 86400, s / 3600 % 24),
    }
}

/// Parses a number with this unit, such as seconds or milliseconds.
///
/// # Errors
/// It is not a number; as text.
pub fn parse_number(unit: &str, text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("not a number of {unit}"))
}

/// Parses a number of bytes with a binary unit: `4096`, `64K`, `1M`, `2G`.
///
/// # Errors
/// It is not a number, or the unit is unknown; as text.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.trim_end_matches(|c: char| c.is_ascii_alphabetic()) {
        digits if digits.len() == text.len() => (text, 1),
        digits => match &text[digits.len()..] {
            "K" | "k" => (digits, 1 << 10),
            "M" => (digits, 1 << 20),
            "G" => (digits, 1 << 30),
            other => {
                return Err(format!("unknown unit {other:?}: use K, M or G, or no unit for bytes"));
            }
        },
    };
    let count: u64 = digits.parse().map_err(|_| "not a number of bytes".to_owned())?;
    Ok(count.saturating_mul(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        assert_eq!(latency(999), "999 ns");
        assert_eq!(latency(12_340), "12.3 us");
        assert_eq!(latency(5_000_000_000), "5.00 s");
        assert_eq!(offset(-3_400_000, Some(600_000)), "-3.4 ms ± 600.0 us");
        assert_eq!(offset(93_784_000_000_000, Some(40_000)), "+1 d 2 h ± 40.0 us");
        assert_eq!(offset(0, None), "+0 ns ± ?");
        assert_eq!(bytes(12.0), "12 B");
        assert_eq!(bytes(1.5e6), "1.50 MB");
        assert_eq!(uptime(Duration::from_secs(59)), "59 s");
        assert_eq!(uptime(Duration::from_secs(3_725)), "1 h 2 min");
    }
}
