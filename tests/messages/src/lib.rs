//! What a user's crate has: one line.

rnet::include_protos!();
