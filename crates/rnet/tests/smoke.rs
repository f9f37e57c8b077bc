use rnet::*;
use std::time::Duration;

fn node(name: &str, domain: &str) -> Node {
    Node::builder(name).domain(domain).open().unwrap()
}
const S5: Option<Duration> = Some(Duration::from_secs(5));

#[test]
fn one_to_one() {
    let d = format!("smoke{}", std::process::id());
    let a = node("a", &d);
    let b = node("b", &d);
    let mut p = a.publisher::<[u8]>("/t").unwrap();
    let mut s = b.subscriber::<[u8]>("/t").unwrap();
    let t = std::time::Instant::now();
    p.wait_for_subscribers(1, S5).unwrap();
    s.wait_for_publishers(1, S5).unwrap();
    eprintln!("match {:?}", t.elapsed());
    for i in 0..100_000u32 {
        p.send(&i.to_le_bytes()).unwrap();
        let m = s.recv(S5).unwrap();
        assert_eq!(&*m, &i.to_le_bytes());
    }
    let big = vec![7u8; 3_000_000];
    for _ in 0..20 {
        p.send(&big).unwrap();
        let m = s.recv(S5).unwrap();
        assert!(&*m == &big[..]);
    }
    assert_eq!(s.lost().total(), 0);
    let (tx, rx) = std::sync::mpsc::channel();
    let sub = s.on(move |m| tx.send(m.len()).unwrap());
    p.send(b"hello").unwrap();
    assert_eq!(rx.recv_timeout(Duration::from_secs(5)).unwrap(), 5);
    drop(sub);
    let mut snap = inspect::Domain::open(Some(&d), None, None).unwrap();
    let s = snap.snapshot().unwrap();
    assert_eq!(s.nodes.len(), 2);
    assert_eq!(s.publishers[0].sent, 100_021);
    let path = snap.path().to_owned();
    drop(p);
    drop(a);
    drop(b);
    assert_eq!(std::fs::read_dir(path.join("nodes")).unwrap().count(), 0);
    std::fs::remove_dir_all(path).unwrap();
}
