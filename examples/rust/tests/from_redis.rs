//! The Rust of docs/guide/from-redis.md is that of a program, which runs.

use std::path::PathBuf;
use std::process::Command;

const PAGE: &str = include_str!("../../../docs/guide/from-redis.md");
const PROGRAM: &str = include_str!("../from_redis/main.rs");

#[test]
fn what_the_page_shows_is_in_the_program() {
    let program: Vec<&str> = PROGRAM.lines().map(str::trim).collect();
    let blocks = PAGE.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap_or(""));
    let blocks: Vec<Vec<&str>> =
        blocks.map(|block| block.lines().map(str::trim).collect()).collect();
    assert_eq!(blocks.len(), 10);
    for block in blocks {
        let found = program.windows(block.len()).any(|lines| lines == block);
        assert!(found, "not in from_redis/main.rs: {block:#?}");
    }
}

#[test]
fn the_program_runs() {
    let base = PathBuf::from(format!("/dev/shm/rnet-from-redis-{}", std::process::id()));
    std::fs::create_dir(&base).expect("a directory on tmpfs");
    let ran = Command::new(env!("CARGO_BIN_EXE_example-from-redis"))
        .env("RNET_DOMAIN", "from_redis")
        .env("RNET_DIR", &base)
        .env("RNET_STATE_DIR", base.join("durable"))
        .env_remove("RNET_GROUP")
        .output()
        .expect("the program starts");
    std::fs::remove_dir_all(&base).expect("the directory is ours");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}
