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

/// What is known of a lost peer: of one on another host, only that nothing arrives from it.
pub fn lost_text(node: &str, topic: &str) -> String {
    match node.starts_with('@') {
        false => {
            format!("{node} is gone (its process exited); {topic} continues without it; restart it")
        }
        true => format!(
            "{node} is gone (its process exited, or its host cannot be reached); {topic} continues without it; check both with `rnet link status`"
        ),
    }
}

pub fn on_topic(topic: &str) -> String {
    if topic.is_empty() { String::new() } else { format!(" on {topic}") }
}

/// The topic of a wait, unless the text names it.
pub fn where_text(what: &str, topic: &str) -> String {
    if what.contains(topic) { String::new() } else { on_topic(topic) }
}

#[cfg(test)]
mod tests {
    use crate::Error;

    #[test]
    fn a_lost_peer_of_another_host_is_not_said_to_have_exited() {
        let text =
            |node: &str| Error::PeerLost { topic: "/scan".into(), node: node.into() }.to_string();
        assert!(text("/lidar").contains("(its process exited); /scan continues"));
        assert!(text("@eye/lidar").contains("or its host cannot be reached); /scan continues"));
    }
}
