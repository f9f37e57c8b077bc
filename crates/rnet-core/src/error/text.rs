//! The parts of error messages that depend on what is known.

pub fn pid_text(pid: &Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
}

pub fn conflict_text(expected: u64, found: u64) -> String {
    match (expected, found) {
        (0, found) => format!("it was to be absent, and is at revision {found}"),
        (expected, 0) => format!("it was to be at revision {expected}, and is absent"),
        (expected, found) => {
            format!("it was to be at revision {expected}, and is at revision {found}")
        }
    }
}

pub fn home_text(may_hold: bool) -> &'static str {
    match may_hold {
        true => "the write may hold there or not; read the key once that host is back",
        false => {
            "nothing has changed there; wait for that host, or ask `rnet link status` about it"
        }
    }
}

pub fn on_topic(topic: &str) -> String {
    if topic.is_empty() { String::new() } else { format!(" on {topic}") }
}

pub fn os_text(os: &Option<i32>) -> String {
    os.map_or_else(String::new, |os| format!(" (os error {os})"))
}
