use std::time::Instant;
use rnet::Node;
fn main() -> rnet::Result<()> {
    let dir = std::env::temp_dir().join(format!("hist-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let node = |name: &str| Node::builder(name).dir(&dir).domain("t").open();
    let (a, b) = (node("a")?, node("b")?);
    let service = a.service::<[u8], [u8]>("/echo").serve(|bytes| Ok(bytes.to_vec()))?;
    let client = b.client::<[u8], [u8]>("/echo")?;
    for _ in 0..20000 { client.call(&[7; 64], None)?; }
    let mut all = Vec::new();
    for block in 0..40 {
        let mut t = Vec::new();
        let mut last = Instant::now();
        for _ in 0..3000 { client.call(&[7; 64], None)?; let now = Instant::now(); t.push((now - last).as_nanos() as u64); last = now; }
        all.extend_from_slice(&t);
        t.sort();
        if block % 10 == 0 { println!("block {block}: p10 {} p25 {} p50 {} p75 {} p90 {}", t[300], t[750], t[1500], t[2250], t[2700]); }
    }
    for phase in 0..8 { let mut t: Vec<u64> = all.iter().skip(phase).step_by(8).copied().collect(); t.sort(); println!("phase {phase}: p10 {} p50 {}", t[t.len()/10], t[t.len()/2]); }
    if true { return Ok(()); }
    let mut h = [0u32; 60];
    for t in &all { h[(*t as usize / 40).min(59)] += 1; }
    for (i, n) in h.iter().enumerate() { if *n > 300 { println!("{:5} {:6} {}", i * 40, n, "#".repeat(*n as usize / 400)); } }
    drop((client, service));
    let _ = std::fs::remove_dir_all(dir);
    Ok(())
}
