//! Descriptions: valid values, and parsing of untrusted ones.

use proptest::prelude::*;

use super::*;

fn float(min: f64, max: f64) -> ParamDescription {
    let mut d = ParamDescription::new("/arm", "/gain", ParamKind::Float);
    d.default = Some(Value::Float(1.0));
    d.min = Some(Value::Float(min));
    d.max = Some(Value::Float(max));
    d.unit = "1/s".to_owned();
    d
}

fn mode() -> ParamDescription {
    let mut d = ParamDescription::new("/arm", "/mode", ParamKind::Str);
    d.choices = vec!["idle".to_owned(), "run".to_owned()];
    d
}

#[test]
fn invalid_value_is_rejected_with_reason() {
    let gain = float(0.0, 10.0);
    for (value, why) in [
        (Value::Float(10.5), "is above its maximum 10.0 1/s"),
        (Value::Float(-0.1), "is below its minimum 0.0 1/s"),
        (Value::Float(f64::NAN), "is not a number"),
        (Value::Float(f64::INFINITY), "is above its maximum"),
        (Value::Int(3), "is int, but the parameter is float"),
        (Value::Str("3".into()), "is str, but the parameter is float"),
        (Value::Bytes(vec![1]), "is bytes, but the parameter is float"),
        (Value::list([1.0]), "is list[float], but the parameter is float"),
    ] {
        let said = gain.check(&value).unwrap_err();
        assert!(said.contains(why), "{value:?}: {said}");
    }
    for fits in [0.0, -0.0, 10.0, 5.5] {
        assert_eq!(gain.check(&Value::Float(fits)), Ok(()));
    }
    assert_eq!(mode().check(&Value::Str("run".into())), Ok(()));
    let said = mode().check(&Value::Str("Run".into())).unwrap_err();
    assert_eq!(said, "is not one of its choices: idle, run");
    let long = ParamDescription::new("/a", "/t", ParamKind::Str);
    let said = long.check(&Value::Str("x".repeat(MAX_TEXT_LEN_BYTES + 1))).unwrap_err();
    assert!(said.contains("4097 bytes"), "{said}");
}

#[test]
fn each_item_of_a_list_is_checked() {
    let mut d = ParamDescription::new("/arm", "/limits", ParamKind::Floats);
    d.max = Some(Value::Float(3.0));
    assert_eq!(d.validate(), Ok(()));
    assert_eq!(d.check(&Value::list([1.0, 3.0])), Ok(()));
    assert_eq!(d.check(&Value::List(Vec::new())), Ok(()));
    let said = d.check(&Value::list([1.0, 3.5])).unwrap_err();
    assert_eq!(said, "has 3.5 at [1], which is above its maximum 3.0");
    let said = d.check(&Value::Float(1.0)).unwrap_err();
    assert_eq!(said, "is float, but the parameter is list[float]");
    let said = d.check(&Value::list(vec![0.0; MAX_ITEMS + 1])).unwrap_err();
    assert!(said.contains("4097 items"), "{said}");
    assert_eq!(d.adapt(Value::list([1, 2])), Value::list([1.0, 2.0]));
    d.max = Some(Value::list([3.0]));
    assert!(d.validate().unwrap_err().contains("is not of type float"));
    let mut legs = ParamDescription::new("/arm", "/legs", ParamKind::Strs);
    legs.choices = vec!["left".into(), "right".into()];
    assert!(
        legs.check(&Value::list(["left", "middle"]))
            .unwrap_err()
            .contains("not one of its choices")
    );
}

#[test]
fn inconsistent_description_is_rejected() {
    let said = |change: &dyn Fn(&mut ParamDescription)| {
        let mut d = float(0.0, 10.0);
        change(&mut d);
        d.validate().unwrap_err()
    };
    assert!(
        said(&|d| d.min = Some(Value::Float(11.0))).contains("minimum 11.0 is above its maximum")
    );
    assert!(said(&|d| d.min = Some(Value::Int(0))).contains("its minimum 0 is not of type float"));
    assert!(said(&|d| d.max = Some(Value::Float(f64::NAN))).contains("maximum is not a number"));
    assert!(said(&|d| d.default = Some(Value::Float(20.0))).contains("its default 20.0 is above"));
    assert!(said(&|d| d.default = Some(Value::Int(1))).contains("its default 1 is int"));
    assert!(said(&|d| d.choices = vec!["a".into()]).contains("choices are for text"));
    assert!(said(&|d| d.text = "x".repeat(5000)).contains("5000 bytes"));
    let mut many = mode();
    many.choices = (0..=MAX_CHOICES).map(|i| i.to_string()).collect();
    assert!(many.validate().unwrap_err().contains("257 choices"));
    many.choices = (0..MAX_CHOICES).map(|i| format!("{i:0>4000}")).collect();
    assert!(many.validate().unwrap_err().contains("bytes; at most"));
    let mut text = mode();
    text.min = Some(Value::Str("a".into()));
    assert!(text.validate().unwrap_err().contains("a minimum is for numbers"));
}

#[test]
fn int_is_accepted_as_float_if_exact() {
    let gain = float(0.0, 10.0);
    assert_eq!(gain.adapt(Value::Int(3)), Value::Float(3.0));
    assert_eq!(gain.adapt(Value::Int(i64::MAX)), Value::Int(i64::MAX));
    assert_eq!(mode().adapt(Value::Int(3)), Value::Int(3));
}

#[test]
fn untrusted_description_is_checked() {
    for (text, why) in [
        ("", "EOF"),
        ("[]", "invalid length"),
        (r#"{"node": 1, "type": "int"}"#, "expected a string"),
        (r#"{"type": "complex"}"#, "unknown variant `complex`"),
        (r#"{}"#, "missing field `type`"),
        (r#"{"type": "int", "default": 1.5}"#, "its default 1.5 is float"),
        (r#"{"type": "int", "default": {}}"#, "{} is not a value"),
        (r#"{"type": "float", "max": "nan"}"#, "its maximum \"nan\" is not of type float"),
        (r#"{"type": "str", "choices": "a"}"#, "expected a sequence"),
        (r#"{"type": "str", "choices": [1]}"#, "expected a string"),
        (r#"{"type": "int", "min": 2, "max": 1}"#, "above its maximum"),
        (r#"{"type": "int", "durable": 1}"#, "expected a boolean"),
        (r#"{"type": "int", "refused": {}}"#, "missing field `value`"),
    ] {
        let said = ParamDescription::from_json(text).unwrap_err();
        assert!(said.contains(why), "{text}: {said}");
    }
    // Deep nesting is a parser error, not a stack overflow.
    assert!(ParamDescription::from_json(&"[".repeat(100_000)).is_err());
    // Fields of a later version are ignored.
    assert!(ParamDescription::from_json(r#"{"type": "int", "step": 2}"#).is_ok());
}

proptest! {
    #[test]
    fn descriptions_round_trip(
        a in any::<f64>().prop_filter("a number", |f| !f.is_nan()),
        b in any::<f64>().prop_filter("a number", |f| !f.is_nan()),
        unit in "\\PC{0,8}", text in "\\PC{0,20}", flags in any::<(bool, bool, bool)>(),
    ) {
        let (min, max) = if a <= b { (a, b) } else { (b, a) };
        let mut d = float(min, max);
        d.default = flags.2.then_some(Value::Float(a));
        (d.unit, d.text, d.read_only, d.durable) = (unit, text, flags.0, flags.1);
        d.refused = flags.0.then(|| RefusedValue {
            value: "7".into(), why: "is above".into(), set_by: "/cli".into(),
        });
        prop_assert_eq!(ParamDescription::from_json(&d.to_json()).unwrap(), d.clone());
        d.kind = ParamKind::Floats;
        d.default = Some(Value::list([a, b]));
        prop_assert_eq!(ParamDescription::from_json(&d.to_json()).unwrap(), d);
    }

    #[test]
    fn integers_round_trip_exactly(min in any::<i64>(), more in 0..1_000_000i64) {
        let mut d = ParamDescription::new("/n", "/p", ParamKind::Int);
        d.min = Some(Value::Int(min));
        d.max = Some(Value::Int(min.saturating_add(more)));
        prop_assert_eq!(ParamDescription::from_json(&d.to_json()).unwrap(), d);
    }

    #[test]
    fn arbitrary_text_does_not_panic(text in "\\PC{0,60}|[{}\\[\\]\":,a-z0-9]{0,60}") {
        let _ = ParamDescription::from_json(&text);
    }
}
