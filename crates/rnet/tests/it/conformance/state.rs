//! Behaviours of the state and of parameters between processes.

use super::actor::{Outcome, Step};
use super::keys::{KeyStep, PutOptions, SeenChange, SeenEntry, Val};
use super::transport::{Handle, OneHost, Transport};

fn text(value: &str) -> Val {
    Val::Str(value.to_owned())
}

impl Handle {
    #[track_caller]
    fn key_words(&mut self, step: KeyStep) -> Vec<String> {
        match self.act(Step::Key(step)) {
            Outcome::Said(words) => words,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn key_done(&mut self, step: KeyStep) {
        assert_eq!(self.key_words(step), [""; 0]);
    }

    #[track_caller]
    fn set_with(&mut self, key: &str, value: Val, options: PutOptions) -> u64 {
        let words = self.key_words(KeyStep::Set { key: key.to_owned(), value, options });
        words[0].parse().expect("a revision")
    }

    #[track_caller]
    fn set_key(&mut self, key: &str, value: Val) -> u64 {
        self.set_with(key, value, PutOptions::default())
    }

    #[track_caller]
    fn value(&mut self, step: KeyStep) -> Option<Val> {
        match self.act(Step::Key(step)) {
            Outcome::Value(value) => value,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn get_key(&mut self, key: &str) -> Option<Val> {
        self.value(KeyStep::Get { key: key.to_owned() })
    }

    #[track_caller]
    fn get_param(&mut self, name: &str) -> Option<Val> {
        self.value(KeyStep::GetParam { name: name.to_owned() })
    }

    #[track_caller]
    fn key_entry(&mut self, key: &str) -> SeenEntry {
        match self.act(Step::Key(KeyStep::Entry { key: key.to_owned() })) {
            Outcome::Entry(entry) => entry.expect("the key exists"),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn watch_keys(&mut self, prefix: &str) {
        self.key_done(KeyStep::Watch { prefix: prefix.to_owned() });
    }

    #[track_caller]
    fn key_changes(&mut self, count: usize) -> Vec<SeenChange> {
        match self.act(Step::Key(KeyStep::Changes { count })) {
            Outcome::Changes(changes) => changes,
            other => panic!("{other:?}"),
        }
    }
}

/// A list as the JSON text that Python stores for it; other values unchanged.
fn lists_as_json(value: Val) -> Val {
    fn json(value: &Val) -> String {
        match value {
            Val::Bool(value) => value.to_string(),
            Val::Int(value) => value.to_string(),
            Val::Str(value) => format!("{value:?}"),
            Val::List(items) => {
                format!("[{}]", items.iter().map(json).collect::<Vec<_>>().join(","))
            }
            other => panic!("no list of a test has this: {other:?}"),
        }
    }
    if matches!(value, Val::List(_)) { Val::Json(json(&value)) } else { value }
}

fn changed(key: &str, value: Val) -> SeenChange {
    let key = key.to_owned();
    SeenChange { key, value: Some(value), expired: Some(false), initial: false, skipped: Some(0) }
}

fn deleted(key: &str, expired: bool) -> SeenChange {
    let key = key.to_owned();
    SeenChange { key, value: None, expired: Some(expired), initial: false, skipped: Some(0) }
}

/// Two actors, of which each has each role in turn.
fn in_turn<T: Transport>(t: &mut T, mut body: impl FnMut(&mut Handle, &mut Handle, [&str; 2])) {
    let (mut a, mut b) = (t.actor("a"), t.actor("b"));
    let (of_a, of_b) = (t.node_name("a"), t.node_name("b"));
    body(&mut a, &mut b, [&of_a, &of_b]);
    body(&mut b, &mut a, [&of_b, &of_a]);
}

/// A value of each kind is read as it was written, with its writer.
pub fn values_of_each_kind_are_read_as_written<T: Transport>(t: &mut T) {
    let values = [
        Val::Bool(true),
        Val::Int(-(1 << 62)),
        Val::Float(0.1),
        text("grüße"),
        Val::Bytes(vec![0, 255, 7]),
        Val::Json(r#"{"kp":12.5,"on":true,"names":["a",null]}"#.to_owned()),
        Val::List(vec![Val::Int(1), text("x"), Val::List(vec![Val::Bool(false)])]),
        Val::Set(vec![Val::Int(1), Val::Int(3)]),
    ];
    in_turn(t, |writer, reader, [of_writer, _]| {
        for (index, value) in values.iter().enumerate() {
            let key = format!("{of_writer}/{index}");
            assert_eq!(reader.get_key(&key), None);
            let revision = writer.set_key(&key, value.clone());
            let read = reader.get_key(&key).map(lists_as_json);
            let value = lists_as_json(value.clone());
            assert_eq!(read.as_ref(), Some(&value));
            let expected = SeenEntry {
                value,
                revision,
                version: 1,
                owner: of_writer.to_owned(),
                durable: false,
                expires: false,
                last_will: None,
                last_will_delete: false,
            };
            let entry = reader.key_entry(&key);
            assert_eq!(SeenEntry { value: lists_as_json(entry.value.clone()), ..entry }, expected);
        }
        let keys = reader.key_words(KeyStep::Keys { prefix: of_writer.to_owned() });
        assert_eq!(keys, (0..values.len()).map(|n| format!("{of_writer}/{n}")).collect::<Vec<_>>());
    });
}

/// A write at another revision, or with another type, is refused.
pub fn writes_may_have_conditions<T: Transport>(t: &mut T) {
    let at = |if_revision| PutOptions { if_revision: Some(if_revision), ..Default::default() };
    in_turn(t, |writer, other, [of_writer, _]| {
        let key = &format!("{of_writer}/mode");
        let set = |value, options| Step::Key(KeyStep::Set { key: key.clone(), value, options });
        let first = writer.set_with(key, text("idle"), at(0));
        let exists = writer.fails_as(other, set(text("moving"), at(0)));
        assert_eq!(exists.0, "conflict", "{exists:?}");
        let second = other.set_with(key, text("moving"), at(first));
        assert!(second > first);
        let conflict = writer.fails_as(other, set(text("idle"), at(first)));
        assert_eq!(conflict.0, "conflict", "{conflict:?}");
        assert!(conflict.1.contains(key.as_str()), "{conflict:?}");
        let clash = writer.fails_as(other, set(Val::Int(1), PutOptions::default()));
        assert_eq!(clash.0, "state_type", "{clash:?}");
        let delete = |if_revision| KeyStep::Delete { key: key.clone(), if_revision };
        let old = writer.fails_as(other, Step::Key(delete(Some(first))));
        assert_eq!(old.0, "conflict", "{old:?}");
        assert_eq!(other.get_key(key), Some(text("moving")), "nothing was written");
        let options = PutOptions { change_type: true, ..Default::default() };
        other.set_with(key, Val::Int(1), options);
        let present = writer.key_entry(key);
        assert_eq!((present.value, present.version), (Val::Int(1), 3));
        assert_eq!(writer.key_words(delete(Some(present.revision))), ["true"]);
        assert_eq!(other.key_words(delete(None)), ["false"]);
        assert_eq!(other.get_key(key), None);
    });
}

/// No update of two writers at a time is lost.
pub fn counts_of_two_writers_add_up<T: Transport>(t: &mut T) {
    let (mut a, mut b) = (t.actor("a"), t.actor("b"));
    let count = || Step::Key(KeyStep::Count { key: "/count".to_owned(), times: 500 });
    a.set_key("/count", Val::Int(0));
    a.post(count());
    b.post(count());
    assert_eq!((a.answer(), b.answer()), (Outcome::Said(Vec::new()), Outcome::Said(Vec::new())));
    assert_eq!(a.get_key("/count"), Some(Val::Int(2000)));
}

/// All writes of a transaction take effect, or none if another writer has changed a key that it has read.
pub fn transactions_take_effect_as_a_whole<T: Transport>(t: &mut T) {
    in_turn(t, |one, other, [of_one, _]| {
        let keys = [format!("{of_one}/from"), format!("{of_one}/to")];
        let [from, to] = &keys;
        let begin = |who: &mut Handle, amount: i64| {
            who.key_done(KeyStep::Begin);
            for (key, amount) in [(from, -amount), (to, amount)] {
                let read = who.value(KeyStep::Read { key: key.clone() });
                let Some(Val::Int(before)) = read else { panic!("{read:?}") };
                who.key_done(KeyStep::Write { key: key.clone(), value: Val::Int(before + amount) });
            }
        };
        one.set_key(from, Val::Int(10));
        one.set_key(to, Val::Int(0));
        begin(one, 3);
        begin(other, 4);
        assert_eq!(one.get_key(from), Some(Val::Int(10)), "not yet");
        one.key_words(KeyStep::Commit);
        let (from_entry, to_entry) = (other.key_entry(from), other.key_entry(to));
        assert_eq!(from_entry.revision, to_entry.revision, "one change");
        let conflict = other.fails_with(Step::Key(KeyStep::Commit));
        assert_eq!(conflict.0, "conflict", "{conflict:?}");
        assert_eq!([from, to].map(|key| one.get_key(key)), [7, 3].map(|n| Some(Val::Int(n))));
        begin(other, 4);
        other.key_words(KeyStep::Commit);
        assert_eq!([from, to].map(|key| one.get_key(key)), [3, 7].map(|n| Some(Val::Int(n))));
    });
}

/// A watch reports the present values, then each change.
pub fn a_watch_reports_each_change<T: Transport>(t: &mut T) {
    in_turn(t, |writer, watcher, [of_writer, _]| {
        let key = |name: &str| format!("{of_writer}/{name}");
        let (one, two) = (&key("one"), &key("two"));
        writer.set_key(one, Val::Int(1));
        writer.set_key("/elsewhere", Val::Int(1));
        watcher.watch_keys(of_writer);
        let initial = SeenChange { initial: true, ..changed(one, Val::Int(1)) };
        assert_eq!(watcher.key_changes(1), [initial]);
        writer.set_key(two, text("x"));
        assert_eq!(watcher.key_changes(1), [changed(two, text("x"))]);
        writer.set_key(one, Val::Int(2));
        assert_eq!(watcher.key_changes(1), [changed(one, Val::Int(2))]);
        let delete = KeyStep::Delete { key: two.clone(), if_revision: None };
        assert_eq!(writer.key_words(delete), ["true"]);
        assert_eq!(watcher.key_changes(1), [deleted(two, false)]);
        // The watch is behind, but not by more than the journal holds.
        for number in 3..=5 {
            writer.set_key(one, Val::Int(number));
        }
        assert_eq!(watcher.key_changes(3), [3, 4, 5].map(|n| changed(one, Val::Int(n))));
    });
}

/// A key with a time to live is deleted after it, and reported as expired.
pub fn a_key_expires<T: Transport>(t: &mut T) {
    in_turn(t, |writer, watcher, [of_writer, _]| {
        let key = format!("{of_writer}/alive");
        watcher.watch_keys(&key);
        let options = PutOptions { ttl_ms: Some(600_000), ..Default::default() };
        writer.set_with(&key, Val::Int(1), options);
        assert!(watcher.key_entry(&key).expires);
        let options = PutOptions { ttl_ms: Some(100), ..Default::default() };
        writer.set_with(&key, Val::Int(1), options);
        let last = loop {
            let change = watcher.key_changes(1).remove(0);
            if change.value.is_none() {
                break change;
            }
        };
        assert_eq!(last.expired, Some(true), "{last:?}");
        assert_eq!(watcher.get_key(&key), None);
    });
}

/// The last wills of a node that dies take effect, except for keys that others have written since.
pub fn wills_take_effect_when_their_node_dies<T: OneHost>(t: &mut T) {
    let (mut testator, mut heir) = (t.actor("testator"), t.actor("heir"));
    let will = |value: &str| PutOptions { last_will: Some(text(value)), ..Default::default() };
    let delete = || PutOptions { last_will_delete: true, ..Default::default() };
    testator.set_with("/will/becomes", text("here"), will("gone"));
    testator.set_with("/will/goes", Val::Int(1), delete());
    testator.set_with("/others", text("here"), will("gone"));
    testator.set_key("/stays", Val::Int(1));
    heir.set_key("/others", text("mine"));
    let entry = heir.key_entry("/will/becomes");
    assert_eq!((entry.last_will, entry.last_will_delete), (Some(text("gone")), false));
    assert!(heir.key_entry("/will/goes").last_will_delete);
    heir.watch_keys("/will");
    assert!(heir.key_changes(2).iter().all(|change| change.initial));
    testator.die();
    let mut changes = heir.key_changes(2);
    changes.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(changes, [changed("/will/becomes", text("gone")), deleted("/will/goes", false)]);
    assert_eq!(heir.get_key("/others"), Some(text("mine")));
    assert_eq!(heir.get_key("/stays"), Some(Val::Int(1)));
}

/// After a power cut, durable keys are present in each language, and no others.
pub fn durable_keys_outlive_the_domain<T: OneHost>(t: &mut T) {
    let (mut a, mut b) = (t.actor("a"), t.actor("b"));
    let durable = || PutOptions { durable: Some(true), ..Default::default() };
    a.set_with("/kept/a", Val::Float(1.5), durable());
    b.set_with("/kept/b", Val::Set(vec![text("x")]), durable());
    b.set_key("/memory", Val::Int(1));
    a.die();
    b.die();
    t.cut_power();
    let (mut c, mut d) = (t.actor("c"), t.actor("d"));
    for reader in [&mut c, &mut d] {
        assert_eq!(reader.get_key("/memory"), None);
        let kept = reader.key_entry("/kept/a");
        assert_eq!((kept.value, &*kept.owner, kept.durable), (Val::Float(1.5), "/a", true));
        assert_eq!(reader.get_key("/kept/b"), Some(Val::Set(vec![text("x")])));
    }
}

/// A parameter has only allowed values, from its node and from others; its node gets each new value.
pub fn parameters_stay_within_their_bounds<T: OneHost>(t: &mut T) {
    let (mut arm, mut other) = (t.actor("arm"), t.actor("other"));
    let (gain, mode) = ("/params/arm/gain", "/params/arm/mode");
    arm.key_done(KeyStep::Declare { max: 10.0 });
    assert_eq!(arm.get_param("/gain"), Some(Val::Float(1.0)));
    assert_eq!(other.get_key(gain), Some(Val::Float(1.0)), "the default is visible");
    let set_own = |name: &str, value| KeyStep::SetParam { name: name.to_owned(), value };
    let set = |key: &str, value| {
        Step::Key(KeyStep::Set { key: key.to_owned(), value, options: PutOptions::default() })
    };
    other.set_key(gain, Val::Float(2.5));
    assert_eq!(arm.get_param("/gain"), Some(Val::Float(2.5)));
    arm.key_done(set_own("/gain", Val::Float(3.5)));
    assert_eq!(other.get_key(gain), Some(Val::Float(3.5)));
    let changes = arm.key_words(KeyStep::ParamChanges { at_least: 2 });
    assert_eq!(changes, ["gain 2.5", "gain 3.5"]);
    let bad = [
        ("/gain", gain, Val::Float(11.0), "11.0 is above its maximum 10.0 1/s"),
        ("/gain", gain, Val::Float(-0.5), "-0.5 is below its minimum 0.0 1/s"),
        ("/mode", mode, text("flying"), "flying"),
    ];
    for (name, key, value, why) in bad {
        let own = arm.fails_with(Step::Key(set_own(name, value.clone())));
        assert!(own.0 == "bad_value" && own.1.contains(why), "{own:?}");
        assert_eq!(arm.fails_as(&mut other, set(key, value)), own);
    }
    let other_kind = arm.fails_as(&mut other, set(mode, Val::Int(3)));
    assert_eq!(other_kind.0, "bad_value", "{other_kind:?}");
    assert_eq!(arm.get_param("/gain"), Some(Val::Float(3.5)), "no refused value is stored");
    other.set_key(mode, text("moving"));
    assert_eq!(arm.get_param("/mode"), Some(text("moving")));
    arm.key_done(KeyStep::ResetParam { name: "/mode".to_owned() });
    assert_eq!(other.get_key(mode), Some(text("idle")));
    // Values outlive the node; one that its next declaration does not allow is replaced by the default.
    arm.die();
    let mut arm = t.actor("arm");
    let refused = arm.key_words(KeyStep::Declare { max: 2.0 });
    assert_eq!(refused, ["3.5 is above its maximum 2.0 1/s"]);
    assert_eq!(arm.get_param("/gain"), Some(Val::Float(1.0)));
}
