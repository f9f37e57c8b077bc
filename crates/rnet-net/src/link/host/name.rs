//! The names of another host. The rules use the name that it declares, which other hosts may declare too.
//! Its display name differs from that of every other host.

use rnet::Error;
use rnet::limits::MAX_HOST_LEN_BYTES;

use super::super::announcements::Hello;
use super::super::control_state::ControlState;
use super::super::lock::lock;
use super::Host;
use super::address::HostAddresses;

/// Longest release name, in characters.
const MAX_RELEASE_CHARS: usize = 64;

/// The valid part of a declared name; `None` if no part is valid.
pub fn sanitize_name(text: &str) -> Option<String> {
    let fine = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let name: String = text.chars().filter(fine).take(MAX_HOST_LEN_BYTES).collect();
    (!name.is_empty()).then_some(name)
}

/// The declared name, or the first free name with a number appended.
fn unique_name(said: &str, is_free: impl Fn(&String) -> bool) -> String {
    let numbered = |n: u32| {
        let end = format!("-{n}");
        format!("{}{end}", &said[..said.len().min(MAX_HOST_LEN_BYTES - end.len())])
    };
    let mut names = std::iter::once(said.to_owned()).chain((2..).map(numbered));
    names.find(is_free).unwrap_or_else(|| said.to_owned())
}

impl Host {
    /// Its display name; its id until it has declared a name.
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// The name that it declares, for the rules of the configuration; its id until it has declared one.
    pub fn declared_name(&self) -> &str {
        &self.declared_name
    }

    /// Whether it has this name here and does not prove to be alive: a host that declares the same name may
    /// be its next boot. `since_ns` is when that host appeared.
    pub fn may_be_replaced(&self, name: &str, since_ns: u64) -> bool {
        self.hello.is_some() && self.name == name && !self.was_heard_since(since_ns)
    }

    /// Whether it has exited and ran on the machine on which that host runs.
    pub fn is_replaced_by(&self, hello: &Hello) -> bool {
        let boot = self.hello.as_ref().map_or(0, |hello| hello.boot);
        !self.is_up() && boot != 0 && boot == hello.boot
    }

    /// Applies its greeting; `taken` are the names of the other hosts.
    pub fn apply_hello(&mut self, control: &mut ControlState, mut hello: Hello, taken: &[String]) {
        hello.release = hello.release.chars().take(MAX_RELEASE_CHARS).collect();
        hello.domain.clear();
        self.addresses = HostAddresses::of(&hello);
        (hello.addresses, hello.listen) = Default::default();
        let name = sanitize_name(&std::mem::take(&mut hello.host));
        // Only once: all traffic so far used that name.
        if self.hello.is_none() {
            self.declared_name = name.unwrap_or_else(|| self.presence.host.to_string());
            let ours = &self.shared.name;
            self.name =
                unique_name(&self.declared_name, |name| !taken.contains(name) && name != ours);
            if self.name != self.declared_name {
                let what = format!("host {}", self.declared_name);
                let why = format!(
                    "two hosts have this name; here one of them is called {}, and the rules for {} apply to both: \
                     give each host its own name (network.host in its robot.toml, or RNET_HOST)",
                    self.name, self.declared_name
                );
                control.report(&Error::BadValue { what, why });
            }
        }
        self.hello = Some(hello);
        self.shared.certificates.set(self.name(), self.certificate.clone());
        for lane in &self.lanes {
            lock(&lane.stream).expect_pulses(self.sends_pulses());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_name_is_sanitized_and_truncated() {
        let longest = "n".repeat(MAX_HOST_LEN_BYTES);
        assert_eq!(sanitize_name(&longest), Some(longest.clone()));
        assert_eq!(sanitize_name(&format!("{longest}n")), Some(longest));
        assert_eq!(sanitize_name("a/b c\u{0}-é.1"), Some("abc-.1".to_owned()));
        assert_eq!(sanitize_name("/é "), None);
    }

    #[test]
    fn taken_name_gets_a_number_and_stays_valid() {
        let free_of =
            |said: &str, taken: &[&str]| unique_name(said, |name| !taken.contains(&name.as_str()));
        assert_eq!(free_of("a", &[]), "a");
        assert_eq!(free_of("a", &["a", "a-2"]), "a-3");
        let longest = "n".repeat(MAX_HOST_LEN_BYTES);
        let second = format!("{}-2", &longest[2..]);
        assert_eq!(free_of(&longest, &[&longest]), second);
        assert_eq!(free_of(&longest, &[&longest, &second]), format!("{}-3", &longest[2..]));
    }
}
