//! Ended publishers of which the hostile host never confirms that it has published their last messages.

use super::*;
use rnet::OnFull;

const COUNT: u32 = 300;

/// While that host is connected, each would otherwise be kept with its messages.
#[test]
fn unconfirmed_ends_are_limited() {
    let (hosts, peer) = hosts("unconfirmed", "");
    let (mut problems, node) = Problems::of(&hosts);
    introduce(&peer, 1, "");
    let open = |_| node.publisher::<[u8]>("/t").reliable(OnFull::Wait(LONG)).open().unwrap();
    let mut publishers: Vec<_> = (0..COUNT).map(open).collect();
    let found = hosts.domain(0).inspect().publishers;
    let ids = found.iter().filter(|found| found.topic == "/t").map(|found| found.id);
    // So that the link has handled their announcements.
    wait(&peer, "they are announced", || {
        let texts = peer.documents(Document::Endpoints).concat();
        texts.matches("\"/t\"").count() >= COUNT as usize
    });
    for (publisher, channel) in ids.zip(1..) {
        let want = Subscribe {
            channel,
            publisher,
            from: None,
            reliable: true,
            transient_local: 0,
            credit: 1 << 20,
            wills: false,
            confirms_end: true,
        };
        wait(&peer, "it is requested", || peer.say(Lane::Bulk, &Item::Subscribe(want)));
    }
    let count = |is_active: bool| {
        peer.count(|item| {
            matches!(item, Item::Delivery { subscription: 0, active, .. } if *active == is_active)
        })
    };
    let readers = || hosts.domain(0).inspect().forwarders.len();
    wait(&peer, "all are read", || count(true) == COUNT as usize);
    assert_eq!(readers(), COUNT as usize);
    publishers.iter_mut().for_each(|publisher| publisher.send(b"last").unwrap());
    drop(publishers);
    wait(&peer, "all have ended", || count(false) == COUNT as usize);
    assert_eq!(peer.count(|item| matches!(item, Item::Data(_))), COUNT as usize);
    problems.wait(&peer, "ended publishers with messages that host");
    wait(&peer, "the oldest are dropped", || readers() == 256);
    assert_eq!(peer.sessions(), 1, "the host is not disconnected");
}
