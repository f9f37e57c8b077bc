use rnet_derive::Plain;

#[derive(Clone, Copy, Plain)]
#[plain(crate = "rnet_core")]
#[repr(C)]
struct S {
    name: &'static str,
}

fn main() {}
