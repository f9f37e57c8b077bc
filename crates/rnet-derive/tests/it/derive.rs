//! Output of the derive for valid structs. A crate that forbids unsafe code must be able to use it.
#![forbid(unsafe_code)]
#![deny(warnings)]

use rnet_core::{FieldType, Plain as _, PlainField, Prim, TypeDesc, types_compatible};
use rnet_derive::Plain;

#[derive(Clone, Copy, Plain)]
#[plain(crate = "rnet_core")]
#[repr(C)]
struct Point {
    x: f64,
    y: f64,
}

#[derive(Clone, Copy, Plain)]
#[plain(crate = "::rnet_core", name = "demo.Leg")]
#[repr(C)]
struct Leg {
    foot: Point,
    force_n: [f32; 3],
    r#type: u8,
    _pad: [u8; 3],
}

#[derive(Clone, Copy, Plain)]
#[plain(crate = "rnet_core")]
#[repr(C)]
struct Body {
    legs: [Leg; 4],
    stamp_ns: i64,
}

#[derive(Clone, Copy, Plain)]
#[plain(crate = "rnet_core")]
#[repr(C)]
struct Pair(u16, i16);

#[derive(Clone, Copy, Plain)]
#[plain(crate = "rnet_core")]
#[repr(C)]
struct Tick;

#[derive(Clone, Copy, Plain)]
#[plain(crate = "rnet_core")]
#[repr(C, packed)]
struct Packed {
    flag: u8,
    value: u32,
}

#[test]
fn names_offsets_and_types() {
    let leg = Leg::plain_type();
    assert_eq!((leg.name.as_str(), leg.size, leg.align), ("demo.Leg", 32, 8));
    let fields: Vec<(&str, usize, String)> =
        leg.fields.iter().map(|f| (f.name.as_str(), f.offset, f.ty.to_string())).collect();
    let expected = [
        ("foot", 0, "struct Point (16 bytes)".to_owned()),
        ("force_n", 16, "f32[3]".to_owned()),
        ("type", 28, "u8".to_owned()),
        ("_pad", 29, "u8[3]".to_owned()),
    ];
    assert_eq!(fields, expected);
}

#[test]
fn nested_tuple_empty_and_packed_structs_are_valid() {
    let types = [Body::plain_type(), Pair::plain_type(), Tick::plain_type(), Packed::plain_type()];
    for plain in types {
        plain.validate().unwrap();
        let desc = TypeDesc::from(plain);
        let back = TypeDesc::from_json(&desc.to_json()).unwrap();
        assert_eq!(back, desc);
        types_compatible(&back, &desc).unwrap();
    }
    assert_eq!(Pair::plain_type().fields[1].name, "1");
    assert_eq!(Tick::plain_type().size, 0);
    assert_eq!(Packed::plain_type().fields[1].offset, 1);
    assert_eq!(<[Body; 2]>::field_type().size(), 2 * size_of::<Body>());
    assert_eq!(Point::plain_type().fields[0].ty, FieldType::Prim(Prim::F64));
}

#[derive(Clone, Copy, Plain)]
#[plain(crate = "rnet_core", name = "demo.Picture", tail)]
#[repr(C)]
struct Picture {
    data_offset: u64,
    data_len: u64,
}

#[test]
fn header_type_has_tail() {
    let header = <Picture as rnet_core::PlainHeader>::header_type();
    header.validate().unwrap();
    assert_eq!((header.tail, header.size), (true, 16));
    assert_eq!(header.to_string(), "plain type demo.Picture (16 bytes and data)");
    assert!(!Pair::plain_type().tail);
    let picture = Picture { data_offset: 16, data_len: 3 };
    assert_eq!(picture.data_offset + picture.data_len, 19);
}

#[test]
fn fields_are_used() {
    // Also prevents dead-code warnings for the fields.
    let foot = Point { x: 1.0, y: 2.0 };
    let leg = Leg { foot, force_n: [1.0, 2.0, 3.0], r#type: 7, _pad: [0; 3] };
    let body = Body { legs: [leg; 4], stamp_ns: -5 };
    assert_eq!(body.legs[3].foot.x + body.legs[3].foot.y, 3.0);
    assert_eq!((body.legs[0].r#type, body.legs[0].force_n[2], body.stamp_ns), (7, 3.0, -5));
    let (pair, packed, _) = (Pair(1, -1), Packed { flag: 1, value: 2 }, Tick);
    assert_eq!(i32::from(pair.0) + i32::from(pair.1), 0);
    assert_eq!(u32::from(packed.flag) + { packed.value }, 3);
}
