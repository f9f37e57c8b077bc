//! `rnet state` and durable keys.

use crate::util;

use serde_json::json;
use util::TestEnv;

#[test]
fn durable_keys_outlive_shared_memory() {
    let env = TestEnv::new();
    rnet!(env, "state", "set", "/gain", "1.5", "--durable").ok();
    rnet!(env, "state", "set", "/passing", "1").ok();
    // Simulates a restart of the machine: the domain's directory is gone.
    std::fs::remove_dir_all(env.domain_dir()).unwrap();
    assert_eq!(rnet!(env, "state", "list").ok(), "/gain\n");
    assert_eq!(rnet!(env, "state", "get", "/gain").ok(), "1.5\n");
    // Inspecting another domain does not create it.
    assert_eq!(rnet!(env, "state", "list", "--domain", "other").ok(), "");
    let names = std::fs::read_dir(&env.dir).unwrap();
    let names: Vec<_> = names.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!names.iter().any(|name| name.contains("other")), "{names:?}");
}

#[test]
fn durable_keys_are_loaded_as_durable() {
    let env = TestEnv::new();
    rnet!(env, "state", "set", "/gain", "1.5", "--durable").ok();
    rnet!(env, "state", "set", "/passing", "1").ok();
    let durable = |key: &str| rnet!(env, "state", "get", key, "--json").json()["durable"].clone();
    assert_eq!((durable("/gain"), durable("/passing")), (json!(true), json!(false)));
    // Durable keys stay durable until changed.
    rnet!(env, "state", "set", "/gain", "2.5").ok();
    assert_eq!(durable("/gain"), true);
    let file = env.dir.join("durable.jsonl");
    std::fs::write(&file, rnet!(env, "state", "dump").ok()).unwrap();
    let file = file.to_str().unwrap().to_owned();
    rnet!(env, "state", "del", "/gain", "/passing").ok();
    rnet!(env, "state", "load", &file).ok();
    assert_eq!((durable("/gain"), durable("/passing")), (json!(true), json!(false)));
    rnet!(env, "state", "set", "/gain", "2.5", "--durable=false").ok();
    assert_eq!(durable("/gain"), false);
}
