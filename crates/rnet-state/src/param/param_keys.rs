//! The keys of a parameter in the state.

use rnet_core::{Error, MAX_KEY_LEN_BYTES, NodeName, Result, TopicName};

/// Prefix of the keys of all parameters.
const VALUE_ROOT: &str = "/params";
/// Prefix of the keys of their descriptions. Not longer than [`VALUE_ROOT`], so that both keys fit.
const DESCRIPTION_ROOT: &str = "!param";

const _: () = assert!(DESCRIPTION_ROOT.len() <= VALUE_ROOT.len());

/// The names and keys of one parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParamKeys {
    /// The node: `/arm`.
    pub(crate) node: String,
    /// The name: `/gain`.
    pub(crate) name: String,
    /// The key of its value: `/params/arm/gain`.
    pub(crate) key: String,
    /// The key of its description: `!param/arm/gain`.
    pub(crate) description_key: String,
}

impl ParamKeys {
    /// The keys of parameter `name` of `node`.
    ///
    /// # Errors
    /// `BadName`: the name follows the rules of topics, and both names together must fit into a key.
    pub(crate) fn new(node: &NodeName, name: &str) -> Result<ParamKeys> {
        let bad = |name: &str, why: String| Error::BadName {
            what: "parameter",
            name: name.to_owned(),
            why,
        };
        let name = TopicName::new(name).map_err(|error| match error {
            Error::BadName { name, why, .. } => bad(&name, why),
            other => other,
        })?;
        let (node, name) = (node.as_str().to_owned(), name.as_str().to_owned());
        let key = format!("{VALUE_ROOT}{node}{name}");
        if key.len() > MAX_KEY_LEN_BYTES {
            let why =
                format!("{key} has {} bytes; a key has at most {MAX_KEY_LEN_BYTES}", key.len());
            return Err(bad(&name, why));
        }
        let description_key = format!("{DESCRIPTION_ROOT}{node}{name}");
        Ok(ParamKeys { node, name, key, description_key })
    }

    /// The parameter for display: `parameter /gain of /arm`.
    pub(crate) fn display_name(&self) -> String {
        display_name(&self.node, &self.name)
    }
}

/// A parameter for display.
pub(crate) fn display_name(node: &str, name: &str) -> String {
    format!("parameter {name} of {node}")
}

/// The prefix of all parameters' keys.
pub(crate) const ALL_VALUES: &str = "/params/";
/// The prefix of all descriptions' keys.
pub(crate) const ALL_DESCRIPTIONS: &str = "!param/";

/// Whether a key is that of a parameter, declared or not.
pub(crate) fn is_param_key(key: &str) -> bool {
    key.starts_with(ALL_VALUES)
}

/// Whether a key is that of a description.
pub(crate) fn is_description_key(key: &str) -> bool {
    key.starts_with(ALL_DESCRIPTIONS)
}

/// The key of the description for a parameter's key.
pub(crate) fn description_key_of(key: &str) -> Option<String> {
    let rest = key.strip_prefix(VALUE_ROOT).filter(|_| is_param_key(key))?;
    Some(format!("{DESCRIPTION_ROOT}{rest}"))
}

/// The key of the parameter for a description's key.
pub(crate) fn param_key_of(about: &str) -> Option<String> {
    let rest = about.strip_prefix(DESCRIPTION_ROOT).filter(|_| is_description_key(about))?;
    Some(format!("{VALUE_ROOT}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(node: &str, name: &str) -> Result<ParamKeys> {
        ParamKeys::new(&NodeName::new(node).unwrap(), name)
    }

    #[test]
    fn keys_contain_node_and_name() {
        let p = place("/arm/left", "pid/p").unwrap();
        assert_eq!(
            (p.key.as_str(), p.description_key.as_str()),
            ("/params/arm/left/pid/p", "!param/arm/left/pid/p")
        );
        assert_eq!(p.display_name(), "parameter /pid/p of /arm/left");
        assert_eq!(description_key_of(&p.key).as_ref(), Some(&p.description_key));
        assert_eq!(param_key_of(&p.description_key), Some(p.key));
        for other in ["/params", "/paramsx/a", "/a/params/b", ""] {
            assert_eq!(description_key_of(other), None, "{other}");
        }
        assert!(
            is_description_key("!param/a")
                && !is_description_key("!params")
                && !is_param_key("!param/a")
        );
    }

    #[test]
    fn bad_names_are_reported_as_parameter_names() {
        for bad in ["", "/", "a b", "/a//b", "/gain/", "2x"] {
            let said = place("/arm", bad).unwrap_err().to_string();
            assert!(said.starts_with("bad parameter name"), "{said}");
        }
        let said = place(&"n".repeat(150), &"p".repeat(150)).unwrap_err().to_string();
        assert!(said.contains("309 bytes") && said.contains("at most 255"), "{said}");
    }
}
