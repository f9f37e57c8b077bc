//! Full names of messages, enums and their parts.

/// The full name of what is called `name` inside of `scope`; the empty scope is no package.
pub(crate) fn join(scope: &str, name: &str) -> String {
    if scope.is_empty() { name.to_owned() } else { format!("{scope}.{name}") }
}
