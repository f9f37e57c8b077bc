//! Which nodes a command is about, by name and by host.

use std::fmt;
use std::str::FromStr;

use crate::link::host_of;
use rnet::NamePattern;
use rnet::limits::MAX_NODE_NAME_LEN_BYTES;

/// Nodes of one host, or of all: `/arm/**` or `@host1/arm/**`.
#[derive(Clone, Debug)]
pub struct NodeFilter {
    host: Option<String>,
    names: NamePattern,
}

impl NodeFilter {
    /// Whether this one is of them; of another host its name begins with `@host`.
    pub fn matches(&self, node: &str) -> bool {
        let (host, name) = host_of(node);
        self.names.matches(name) && self.host.as_deref().is_none_or(|of| host == Some(of))
    }
}

impl FromStr for NodeFilter {
    type Err = rnet::Error;

    fn from_str(text: &str) -> Result<NodeFilter, rnet::Error> {
        let (host, names) = host_of(text);
        if let Some("" | "*" | "**") = host {
            let why = "must be the name of one host, as in @host1/arm".to_owned();
            return Err(rnet::Error::BadValue { what: format!("host of {text}"), why });
        }
        let names = NamePattern::new("node", names, MAX_NODE_NAME_LEN_BYTES)?;
        Ok(NodeFilter { host: host.map(str::to_owned), names })
    }
}

impl fmt::Display for NodeFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Some(host) => write!(f, "@{host}{}", self.names.as_str()),
            None => f.write_str(self.names.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_chosen_by_name_and_by_host() {
        let nodes = |text: &str| text.parse::<NodeFilter>().unwrap();
        for (of, matching, other) in [
            ("/arm", ["/arm", "@host1/arm"], "/arm/hand"),
            ("@host1/**", ["@host1/arm", "@host1/arm/hand"], "/arm"),
            ("@host1/arm", ["@host1/arm"; 2], "@host2/arm"),
        ] {
            assert!(matching.iter().all(|node| nodes(of).matches(node)), "{of}");
            assert!(!nodes(of).matches(other), "{of}");
            assert_eq!(nodes(of).to_string(), of);
        }
        assert_eq!(nodes("arm").to_string(), "/arm");
        for bad in ["@host1", "a b", "@/arm", "@*/arm"] {
            assert!(bad.parse::<NodeFilter>().is_err(), "{bad}");
        }
    }
}
