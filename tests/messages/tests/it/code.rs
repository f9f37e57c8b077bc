//! The code that rnet-build generates from a user's files: its names, its types, and its descriptor sets.

use rnet::schema::Schema;
use rnet_message_tests::{Loose, legacy, my, r#type};
use rnet_schema::reflect::ReflectSchema;

use crate::common;
use common::schema_of;

#[test]
fn user_message_contains_built_in_ones() {
    let plan = my::robot::Plan {
        goal: Some(rnet::msgs::Pose::default()),
        start: Some(rnet::msgs::JointState { position: vec![0.5], ..Default::default() }),
        timestamp: Some(rnet::msgs::timestamp_from_ns(5)),
        end: Some(my::robot::plan::End::Hold(my::robot::parts::gripper::Hold::Closed as i32)),
        mode: Some(rnet::msgs::RobotMode::default()),
        number_type: rnet::msgs::foxglove::packed_element_field::NumericType::Float32 as i32,
        steps: vec![my::robot::plan::Step {
            instead: Some(Box::default()),
            inside: vec![Default::default()],
            ..Default::default()
        }],
        ..Default::default()
    };
    let loose = Loose { plan: Some(plan) };
    let again = common::through_dynamic(&loose);
    assert_eq!(again, loose);
}

#[test]
fn names_that_are_rust_keywords_compile() {
    use r#type::r#fn::r#loop as awkward;
    let message = awkward::Self_ {
        r#type: Some(awkward::self_::Match { r#mod: 1 }),
        self_: vec!["a".into()],
        crate_: vec!["b".into()],
        r#async: vec!["c".into()],
        r#where: awkward::self_::Enum::Self_ as i32,
        r#impl: Some(awkward::self_::Impl::True(true)),
        r#while: [("x".into(), awkward::Self_::default())].into(),
    };
    assert_eq!(common::through_dynamic(&message), message);
    let server = awkward::HttpServer20 { header_names: vec!["h".into()] };
    assert_eq!(common::through_dynamic(&server), server);
    let clash = awkward::SnakeCaseName {
        string: Some(awkward::String { value: vec!["s".into()] }),
        option: Some(awkward::Option { some: Some("o".into()) }),
        vec: Some(awkward::Vec { vec: vec![Default::default()] }),
    };
    assert_eq!(common::through_dynamic(&clash), clash);
}

#[test]
fn proto2_with_groups_and_defaults() {
    let old = legacy::Old {
        id: -1,
        part: vec![legacy::old::Part { label: None, words: vec!["w".into()] }],
        ..Default::default()
    };
    assert_eq!((old.name(), old.mode()), ("none", legacy::Mode::Fast));
    assert_eq!(common::through_dynamic(&old), old);
}

/// The set of each message is that of its own type, with the comments.
#[test]
fn the_descriptor_set_has_the_comments() {
    let plan: Schema = schema_of::<my::robot::Plan>();
    assert_eq!(plan.name(), "my.robot.Plan");
    assert_eq!(plan.docs().unit("my.robot.Plan.speed"), Some("m/s"));
    assert_eq!(plan.docs().unit("rnet.msgs.JointState.effort"), Some("N*m or N"));
    assert_eq!(schema_of::<my::robot::plan::Step>().name(), "my.robot.Plan.Step");
    assert_eq!(schema_of::<my::robot::parts::Gripper>().name(), "my.robot.parts.Gripper");
    assert_eq!(schema_of::<r#type::r#fn::r#loop::self_::Match>().name(), "type.fn.loop.Self.match");
    assert_eq!(schema_of::<legacy::old::Part>().name(), "legacy.Old.Part");
}

/// A user's crate describes a built-in type in the same way as `rnet`.
#[test]
fn built_in_types_match_those_of_rnet() {
    let plan = schema_of::<my::robot::Plan>();
    let start = plan.descriptor().get_field_by_name("start");
    let start = start.and_then(|field| field.kind().as_message().cloned());
    assert_eq!(start.map(|m| m.full_name().to_owned()).as_deref(), Some("rnet.msgs.JointState"));
    let bytes = plan.descriptor_set();
    let theirs =
        Schema::from_descriptor_set(bytes, "rnet.msgs.JointState").expect("it is in the set");
    assert_eq!(theirs, schema_of::<rnet::msgs::JointState>());
}
