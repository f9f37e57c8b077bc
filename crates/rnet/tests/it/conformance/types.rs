//! Behaviours of typed messages, and of errors, whose texts are the same in all languages.

use rnet::{PublisherQos, SubscriberQos};

use super::actor::{Outcome, Step};
use super::delivery::{asks_reliable, short_log};
use super::keys::{KeyStep, PutOptions, Val};
use super::parts::{Part, Then};
use super::transport::{Handle, Transport};
use super::typed::{MessageForm, TypedStep};

const TOPIC: &str = "/typed";

impl Handle {
    #[track_caller]
    fn typed(&mut self, step: TypedStep) -> String {
        match self.act(Step::Typed(step)) {
            Outcome::Said(words) => words.concat(),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn publish_form(&mut self, topic: &str, form: MessageForm) {
        self.typed(TypedStep::Publish { topic: topic.to_owned(), form });
    }

    #[track_caller]
    fn subscribe_form(&mut self, topic: &str, form: MessageForm) {
        self.typed(TypedStep::Subscribe { topic: topic.to_owned(), form });
    }

    /// The code and the text of the step's error.
    #[track_caller]
    pub fn fails_with(&mut self, step: Step) -> (String, String) {
        match self.act(step) {
            Outcome::Failed { code, text, .. } => (code, text),
            other => panic!("expected an error, got {other:?}"),
        }
    }

    /// The code and the text of an error that two actors get for the same step.
    #[track_caller]
    pub fn fails_as(&mut self, other: &mut Handle, step: Step) -> (String, String) {
        let error = self.fails_with(step.clone());
        assert_eq!(other.fails_with(step), error);
        error
    }
}

/// What each language makes of the message with this number.
fn words_of(form: MessageForm, number: u32) -> String {
    let n = number;
    let leg = format!(
        "{n} {} {} {} {n} {} {} {} {} {}",
        -2 * i64::from(n),
        3 * n,
        (1_u64 << 60) + u64::from(n),
        n + 1,
        n + 2,
        n + 3,
        1000 * n,
        u32::MAX - n
    );
    match form {
        MessageForm::Leg | MessageForm::LegRetyped => leg,
        MessageForm::LegGrown => format!("{leg} {}", 10 * n),
        MessageForm::Twist if n % 2 == 1 => format!("{n} -{n} 0 0 0 {n}"),
        MessageForm::Twist => format!("{n} -{n} 0 none"),
        MessageForm::LaserScan => format!("laser {n} {n} 7 1080 {}", 1080 * n + 1079 * 540),
    }
}

/// Structs of each language and built-in messages arrive unchanged, small and large.
pub fn structs_and_messages_arrive<T: Transport>(t: &mut T) {
    let (mut writer, mut reader) = (t.actor("writer"), t.actor("reader"));
    for form in [MessageForm::Leg, MessageForm::Twist, MessageForm::LaserScan] {
        let topic = format!("{TOPIC}/{form:?}").to_lowercase();
        writer.publish_form(&topic, form);
        reader.subscribe_form(&topic, form);
        writer.typed(TypedStep::WaitSubscribers);
        // With a field that only every other message has.
        for number in 1..=4 {
            writer.typed(TypedStep::Send { number });
            assert_eq!(reader.typed(TypedStep::Receive), words_of(form, number.into()), "{form:?}");
        }
    }
}

/// A longer struct is read as the shorter one, and a shorter one with zeros.
pub fn a_struct_may_grow_at_its_end<T: Transport>(t: &mut T) {
    let (mut writer, mut reader) = (t.actor("writer"), t.actor("reader"));
    let (old, new) = (MessageForm::Leg, MessageForm::LegGrown);
    for (topic, sent, read) in [("/shorter", old, new), ("/longer", new, old)] {
        writer.publish_form(topic, sent);
        reader.subscribe_form(topic, read);
        writer.typed(TypedStep::WaitSubscribers);
        writer.typed(TypedStep::Send { number: 9 });
        let zero = if read == new { " 0" } else { "" };
        let expected = words_of(old, 9) + zero;
        assert_eq!(reader.typed(TypedStep::Receive), expected, "{sent:?} read as {read:?}");
    }
}

/// Both sides of a topic with two types get the same text, which names the first difference.
pub fn a_clash_of_types_has_one_text<T: Transport>(t: &mut T) {
    let (mut writer, mut reader) = (t.actor("writer"), t.actor("reader"));
    let clashes = [
        (MessageForm::Leg, MessageForm::LegRetyped, ["`turns`", "i32 at 48", "u32 at 48"]),
        (MessageForm::LegRetyped, MessageForm::LegGrown, ["`turns`", "u32 at 48", "i32 at 48"]),
        (MessageForm::Leg, MessageForm::Twist, ["conformance.Leg", "rnet.msgs.Twist", "type"]),
        (
            MessageForm::LaserScan,
            MessageForm::Twist,
            ["foxglove.LaserScan", "rnet.msgs.Twist", "type"],
        ),
    ];
    let (of_writer, of_reader) = (t.node_name("writer"), t.node_name("reader"));
    for (index, (sent, read, words)) in clashes.into_iter().enumerate() {
        let topic = format!("{TOPIC}{index}");
        writer.publish_form(&topic, sent);
        reader.subscribe_form(&topic, read);
        let (code, text) = reader.fails_with(Step::Typed(TypedStep::Receive));
        assert_eq!(code, "incompatible_type");
        for word in [&topic, &of_writer, &of_reader].into_iter().map(String::as_str).chain(words) {
            assert!(text.contains(word), "{word:?} is not in {text:?}");
        }
        let of_other = writer.fails_with(Step::Typed(TypedStep::WaitSubscribers));
        assert_eq!(of_other, (code, text));
    }
}

/// Requests and replies with types; a client with another type gets an error that names the difference.
pub fn calls_carry_typed_messages<T: Transport>(t: &mut T) {
    let (mut server, mut client) = (t.actor("server"), t.actor("client"));
    let (of_server, of_client) = (t.node_name("server"), t.node_name("client"));
    for form in [MessageForm::Leg, MessageForm::Twist, MessageForm::LaserScan] {
        let name = format!("/echo/{form:?}").to_lowercase();
        server.typed(TypedStep::Echo { name: name.clone(), form });
        let call = |form| TypedStep::Call { name: name.clone(), form, number: 7 };
        assert_eq!(client.typed(call(form)), words_of(form, 7));
        let (code, text) = client.fails_with(Step::Typed(call(MessageForm::LegRetyped)));
        assert_eq!(code, "incompatible_type", "{text}");
        let nodes = format!("(client {of_client}, server {of_server})");
        assert!(text.contains(&format!("calls of {name}: ")) && text.contains(&nodes), "{text}");
    }
}

/// Bad names and options, and waits that time out, have the same text in all languages.
pub fn errors_have_one_text<T: Transport>(t: &mut T) {
    let (mut a, mut b) = (t.actor("a"), t.actor("b"));
    let mut same = |step: Step, code: &str| {
        let error = a.fails_as(&mut b, step);
        assert_eq!(error.0, code, "{error:?}");
    };
    let publish = |topic: &str, qos| Step::Publish { topic: topic.to_owned(), qos };
    let subscribe = |topic: &str, qos| Step::Subscribe { topic: topic.to_owned(), qos };
    same(publish("/a b", PublisherQos::default()), "bad_name");
    same(subscribe("", SubscriberQos::default()), "bad_name");
    same(publish("/t", PublisherQos { log_len_bytes: 1000, ..Default::default() }), "bad_qos");
    let (key, options) = ("/a b".to_owned(), PutOptions::default());
    same(Step::Key(KeyStep::Set { key, value: Val::Int(1), options }), "bad_name");

    for (name, actor) in [("/a/only", &mut a), ("/b/only", &mut b)] {
        actor.publish(name, PublisherQos { pool_limit_bytes: 1 << 20, ..short_log() });
        actor.subscribe(&format!("{name}/else"), asks_reliable());
    }
    let timeout_ms = 30;
    for step in [
        Step::WaitSubscribers { n: 1, timeout_ms },
        Step::WaitPublishers { n: 1, timeout_ms },
        Step::Receive { count: 1, timeout_ms, hold: false },
        Step::Latest { timeout_ms },
        Step::Send { tag: 1, from: 0, count: 1, len: 2 << 20 },
    ] {
        let of_a = a.fails_with(step.clone());
        let of_b = b.fails_with(step);
        assert_eq!(of_b.1.replace("/b/only", "/a/only"), of_a.1);
        assert_eq!(of_b.0, of_a.0);
    }
}

/// The errors of calls have the same text in the language of the server and in another one.
pub fn errors_of_calls_have_one_text<T: Transport>(t: &mut T) {
    let (mut server, mut client, mut near) =
        (t.actor("server"), t.actor("client"), t.actor("near"));
    let part = |actor: &mut Handle, part| {
        assert_eq!(actor.act(Step::Part(part)), Outcome::Said(Vec::new()));
    };
    part(&mut server, Part::Serve { backlog: 8 });
    let mut call = 0;
    for client in [&mut client, &mut near] {
        part(client, Part::Call { servers: 1 });
    }
    let mut same = |then, timeout_ms, expected: &[&str]| {
        for client in [&mut client, &mut near] {
            part(client, Part::Begin { count: 0, then, timeout_ms });
        }
        let (code, text) = client.fails_as(&mut near, Step::Part(Part::Error { call }));
        call += 1;
        assert_eq!(code, expected[0], "{text}");
        for word in &expected[1..] {
            assert!(text.contains(word), "{word:?} is not in {text:?}");
        }
    };
    same(
        Then::Fail,
        30_000,
        &["call_failed", "/count", "/server", "TooMany", "it counts no further"],
    );
    same(Then::Wait, 200, &["timeout", "/count"]);
    for client in [&mut client, &mut near] {
        part(client, Part::Begin { count: 0, then: Then::Wait, timeout_ms: 30_000 });
    }
    let begun = server.act(Step::Part(Part::Said { at_least: 3 }));
    server.die();
    let (code, text) = client.fails_as(&mut near, Step::Part(Part::Error { call }));
    assert!(code == "server_lost" && text.contains("/server"), "{text}, after {begun:?}");
}
