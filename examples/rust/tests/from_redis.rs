//! The program that docs/guide/from-redis.md shows runs.

use std::path::PathBuf;
use std::process::Command;

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
