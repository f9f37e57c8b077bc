//! Rust types of the built-in messages, for `src/msgs.rs`.

fn main() {
    rnet_build::builtin_protos();
}
