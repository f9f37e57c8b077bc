//! Behaviours of log lines, last wills and pairs of topics, and their steps.

use rnet::bridge::ProxyPublisher;
use rnet::msgs::Log;
use rnet::{Error, LOG_TOPIC, LogLevel, Node, OnFull, Publisher, Result, Subscriber};
use serde::{Deserialize, Serialize};

use super::actor::{Outcome, Step};
use super::transport::{Handle, Transport};
use crate::common::{LONG, eventually};

/// A step of an actor on the topic that it publishes, or on the one that it subscribes to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Talk {
    /// Opens a reliable publisher, with or without a last will.
    Publish {
        topic: String,
        will: Option<u8>,
    },
    /// Opens a reliable subscriber.
    Subscribe {
        topic: String,
    },
    /// Waits until each endpoint is matched.
    Meet,
    Say {
        value: u8,
    },
    /// Reads until the publisher's node is lost.
    HearToItsLoss,
    /// Reads this many messages.
    Hear {
        count: usize,
    },
    /// Reads the available messages once the publisher is gone.
    HearWhatIsLeft,
    /// Ends the publisher as if its process had died.
    Lose,
    /// Closes the publisher.
    Close,
    Log {
        level: String,
        line: String,
    },
    /// Reads this many log lines: node, level and text.
    HearLog {
        count: usize,
    },
}

/// The endpoints of an actor.
#[derive(Default)]
pub struct Talks {
    publisher: Option<Publisher<[u8]>>,
    subscriber: Option<Subscriber<[u8]>>,
    log: Option<Subscriber<Log>>,
}

impl Talks {
    pub fn act(&mut self, node: &Node, talk: Talk) -> Result<Vec<String>> {
        match talk {
            Talk::Publish { topic, will } => {
                let mut publisher = node.publisher(&topic).reliable(OnFull::Refuse);
                if let Some(will) = will {
                    publisher = publisher.last_will(&[will][..]);
                }
                self.publisher = Some(publisher.open()?);
            }
            Talk::Subscribe { topic } => {
                self.subscriber = Some(node.subscriber(&topic).reliable().open()?);
            }
            Talk::Meet => {
                if let Some(publisher) = &self.publisher {
                    publisher.wait_for_subscribers_timeout(1, LONG)?;
                }
                if let Some(subscriber) = &mut self.subscriber {
                    subscriber.wait_for_publishers_timeout(1, LONG)?;
                }
            }
            Talk::Say { value } => self.publisher.as_mut().expect("opened").send(&[value])?,
            Talk::HearToItsLoss => return Ok(self.hear_to_its_loss()),
            Talk::Hear { count } => {
                let subscriber = self.subscriber();
                return (0..count)
                    .map(|_| Ok(subscriber.recv_timeout(LONG)?[0].to_string()))
                    .collect();
            }
            Talk::HearWhatIsLeft => {
                let subscriber = self.subscriber();
                eventually("its publisher is gone", || subscriber.publisher_count() == 0);
                let mut left = Vec::new();
                while let Some(sample) = subscriber.try_recv()? {
                    left.push(sample[0].to_string());
                }
                return Ok(left);
            }
            Talk::Lose => self.publisher.take().expect("opened").close_as_lost(),
            Talk::Close => self.publisher = None,
            Talk::Log { level, line } => {
                let level = level.parse().expect("a level");
                node.log().publish(level, line, "talk.rs", 1);
            }
            Talk::HearLog { count } => return self.hear_log(node, count),
        }
        Ok(Vec::new())
    }

    fn subscriber(&mut self) -> &mut Subscriber<[u8]> {
        self.subscriber.as_mut().expect("opened")
    }

    fn hear_to_its_loss(&mut self) -> Vec<String> {
        let subscriber = self.subscriber();
        let mut received = Vec::new();
        loop {
            match subscriber.recv_timeout(LONG) {
                Ok(sample) if sample.is_last_will() => received.push(format!("will {}", sample[0])),
                Ok(sample) => received.push(sample[0].to_string()),
                Err(Error::PeerLost { node, .. }) => received.push(format!("lost {node}")),
                Err(error) => received.push(error.to_string()),
            }
            if received.last().is_some_and(|word| word.contains(' ') && !word.starts_with("will")) {
                return received;
            }
        }
    }

    fn hear_log(&mut self, node: &Node, count: usize) -> Result<Vec<String>> {
        if self.log.is_none() {
            self.log = Some(node.subscriber(LOG_TOPIC).transient_local().keep_all().open()?);
        }
        let log = self.log.as_mut().expect("the endpoint was opened");
        (0..count)
            .map(|_| {
                let line = log.recv_timeout(LONG)?;
                let level = format!("{:?}", line.level()).to_lowercase();
                Ok(format!("{} {level} {}", line.name, line.message))
            })
            .collect()
    }
}

impl Handle {
    #[track_caller]
    fn talk(&mut self, talk: Talk) -> Vec<String> {
        match self.act(Step::Talk(talk)) {
            Outcome::Said(words) => words,
            other => panic!("{other:?}"),
        }
    }
}

/// The name that an actor's node has on its own host.
fn own_name<T: Transport>(t: &T, name: &str) -> String {
    let name = t.node_name(name);
    name[name.rfind('/').expect("the node has a name")..].to_owned()
}

/// A log line reaches log readers with its node and level, even if it was written before the reader joined.
pub fn log_lines_keep_their_node_and_level<T: Transport>(t: &mut T) {
    let (mut arm, mut reader) = (t.actor("arm"), t.actor("reader"));
    let name = own_name(t, "arm");
    let mut log = |level: LogLevel, line: &str| {
        arm.talk(Talk::Log { level: level.name().to_owned(), line: line.to_owned() });
    };
    log(LogLevel::Warning, "hot");
    let subscriber = reader.talk(Talk::HearLog { count: 1 });
    assert_eq!(subscriber, [format!("{name} warning hot")]);
    log(LogLevel::Info, "cooler");
    log(LogLevel::Error, "stuck");
    let subscriber = reader.talk(Talk::HearLog { count: 2 });
    assert_eq!(subscriber, [format!("{name} info cooler"), format!("{name} error stuck")]);
}

fn testator<T: Transport>(t: &mut T, topic: &str) -> (Handle, Handle) {
    let (mut testator, mut heir) = (t.actor("testator"), t.actor("heir"));
    heir.talk(Talk::Subscribe { topic: topic.to_owned() });
    testator.talk(Talk::Publish { topic: topic.to_owned(), will: Some(99) });
    for actor in [&mut testator, &mut heir] {
        actor.talk(Talk::Meet);
    }
    (1..4).for_each(|value| drop(testator.talk(Talk::Say { value })));
    (testator, heir)
}

/// The last will of a publisher is read once, after all its messages, when its process dies.
pub fn a_will_is_read_when_its_node_dies<T: Transport>(t: &mut T) {
    let (mut testator, mut heir) = testator(t, "/will/died");
    testator.die();
    let lost = format!("lost {}", t.node_name("testator"));
    assert_eq!(heir.talk(Talk::HearToItsLoss), ["1", "2", "3", "will 99", &lost]);
    assert!(heir.talk(Talk::HearWhatIsLeft).is_empty(), "once");
}

/// The last will is not read when the publisher closes.
pub fn a_publisher_that_is_closed_leaves_no_will<T: Transport>(t: &mut T) {
    let (mut testator, mut heir) = testator(t, "/will/closed");
    assert_eq!(heir.talk(Talk::Hear { count: 3 }), ["1", "2", "3"]);
    testator.talk(Talk::Close);
    assert!(heir.talk(Talk::HearWhatIsLeft).is_empty());
    t.settle();
    assert!(heir.talk(Talk::HearWhatIsLeft).is_empty());
}

/// Two reliable topics, one in each direction: each side receives all messages of the other in order, then
/// its end.
pub fn a_pair_of_topics_carries_both_ways<T: Transport>(t: &mut T) {
    let (mut planner, mut arm) = (t.actor("planner"), t.actor("arm"));
    for (actor, says, hears) in
        [(&mut planner, "/goal", "/progress"), (&mut arm, "/progress", "/goal")]
    {
        actor.talk(Talk::Subscribe { topic: hears.to_owned() });
        actor.talk(Talk::Publish { topic: says.to_owned(), will: None });
    }
    for actor in [&mut planner, &mut arm] {
        actor.talk(Talk::Meet);
    }
    // Both send before they read.
    for value in 0..20 {
        planner.talk(Talk::Say { value });
        arm.talk(Talk::Say { value: 100 + value });
    }
    let numbers = |from: u8| (from..from + 20).map(|value| value.to_string()).collect::<Vec<_>>();
    assert_eq!(arm.talk(Talk::Hear { count: 20 }), numbers(0));
    assert_eq!(planner.talk(Talk::Hear { count: 20 }), numbers(100));
    // Each answer follows its question.
    for value in 0..5 {
        planner.talk(Talk::Say { value });
        assert_eq!(arm.talk(Talk::Hear { count: 1 }), [value.to_string()]);
        arm.talk(Talk::Say { value: value + 1 });
        assert_eq!(planner.talk(Talk::Hear { count: 1 }), [(value + 1).to_string()]);
    }
    arm.talk(Talk::Say { value: 7 });
    t.settle();
    arm.die();
    let lost = format!("lost {}", t.node_name("arm"));
    assert_eq!(planner.talk(Talk::HearToItsLoss), ["7", &lost]);
}
