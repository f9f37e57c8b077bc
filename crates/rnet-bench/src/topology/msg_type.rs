//! Lengths of the messages of ros2-performance.
//!
//! Each of its types is a `performance_test_msgs/PerformanceHeader` and an array called `data`:
//!
//! ```text
//! PerformanceHeader     builtin_interfaces/Time stamp   int32 + uint32    8
//!                       uint32  tracking_number                           4
//!                       float32 frequency                                 4
//!                       uint32  size                                      4   = 20 bytes
//! stamped_int64         int64[1]            stamped4_int32      int32[4]
//! stamped3_float32      float32[3]          …4, 9, 12           float32[4], [9], [12]
//! stamped10b … 600kb    byte[10] …, kb = 1024 bytes; stamped1mb … 8mb, mb = 1024 * 1024
//! stamped_vector        byte[] of `msg_size` bytes; its count is another uint32
//! ```
//! (msg/*.msg in its packages `performance_test_msgs` and `irobot_interfaces_plugin`.) The lengths include
//! only the fields. They exclude what depends on the serialization: CDR's encapsulation (4 bytes) and padding
//! (4 before an int64). The benchmark's own column `size[b]` counts only `data`.

/// Length of the header in each message, in bytes.
pub const HEADER_LEN_BYTES: usize = 20;
/// Length of the count before the elements of a variable-length array, in bytes.
const COUNT_LEN_BYTES: usize = 4;

/// Length of a message of type `msg_type`, in bytes. `msg_size` is the topology's value for a
/// `stamped_vector` (`None` is zero, as in the benchmark), and is ignored for other types. `None` for an
/// unknown type.
pub fn len_bytes(msg_type: &str, msg_size: Option<usize>) -> Option<usize> {
    let data = match msg_type.strip_prefix("stamped")? {
        "_vector" => msg_size.unwrap_or(0).checked_add(COUNT_LEN_BYTES)?,
        array => array_len_bytes(array)?,
    };
    data.checked_add(HEADER_LEN_BYTES)
}

/// Length of an array of fixed length, given as in `10kb`, `4_int32` and `_int64` (one element).
fn array_len_bytes(array: &str) -> Option<usize> {
    let digits = array.find(|c: char| !c.is_ascii_digit())?;
    let (count, element) = array.split_at(digits);
    if count.starts_with('0') {
        return None;
    }
    let element = match (element, count) {
        ("b", _) => 1,
        ("kb", _) => 1 << 10,
        ("mb", _) => 1 << 20,
        ("_int32" | "_float32", _) => 4,
        ("_int64" | "_float64", _) => 8,
        _ => return None,
    };
    match (count, element) {
        ("", 4 | 8) => Some(element),
        _ => count.parse::<usize>().ok()?.checked_mul(element),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benchmark_types_have_lengths_of_their_fields() {
        for (name, len) in [
            ("stamped_int64", 28),
            ("stamped4_int32", 36),
            ("stamped3_float32", 32),
            ("stamped12_float32", 68),
            ("stamped9_float32", 56),
            ("stamped10b", 30),
            ("stamped10kb", 20 + 10 * 1024),
            ("stamped600kb", 20 + 600 * 1024),
            ("stamped8mb", 20 + (8 << 20)),
            ("stamped_vector", 24),
        ] {
            assert_eq!(len_bytes(name, None), Some(len), "{name}");
        }
        assert_eq!(len_bytes("stamped_vector", Some(10_000)), Some(10_024));
        assert_eq!(len_bytes("stamped10b", Some(10_000)), Some(30));
    }

    #[test]
    fn other_names_are_not_types() {
        for name in [
            "",
            "stamped",
            "stamped_",
            "stamped4",
            "stampedb",
            "stampedkb",
            "stamped0b",
            "10kb",
            "stamped4int32",
            "stamped-4_int32",
            "stamped_vector2",
            "Stamped10b",
            "stamped4_int16",
            "stamped99999999999999999999kb",
            "stamped18446744073709551615mb",
            "stamped4_int32 ",
        ] {
            assert_eq!(len_bytes(name, Some(1)), None, "{name:?}");
        }
        assert_eq!(len_bytes("stamped_vector", Some(usize::MAX)), None);
    }
}
