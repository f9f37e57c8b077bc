//! The variable parts of error messages.

pub fn pid_text(pid: &Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
}

pub fn conflict_text(expected: u64, found: u64) -> String {
    match (expected, found) {
        (0, found) => format!("expected it to be absent, found revision {found}"),
        (expected, 0) => format!("expected revision {expected}, but the key is absent"),
        (expected, found) => {
            format!("expected revision {expected}, found revision {found}")
        }
    }
}

pub fn home_text(may_hold: bool) -> &'static str {
    match may_hold {
        true => "the write may or may not have been applied; read the key once that host is back",
        false => {
            "nothing has changed there; wait for that host, or check it with `rnet link status`"
        }
    }
}

pub fn on_topic(topic: &str) -> String {
    if topic.is_empty() { String::new() } else { format!(" on {topic}") }
}

/// The topic of a wait, unless the text names it.
pub fn where_text(what: &str, topic: &str) -> String {
    if what.contains(topic) { String::new() } else { on_topic(topic) }
}
