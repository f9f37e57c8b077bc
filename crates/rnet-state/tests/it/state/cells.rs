//! Cells: access to one key for loops.

use rnet::Error;
use rnet::state::Value;

use super::refusal;
use crate::common::Net;

#[test]
fn a_cell_reads_and_writes_its_key() {
    let net = Net::new("a_cell_reads_and_writes_its_key");
    let state = net.node("n").state().unwrap();
    let mut gain = state.cell::<f64>("arm/gain").unwrap();
    assert_eq!(gain.key(), "/arm/gain");
    assert_eq!((gain.get().unwrap(), gain.revision()), (None, 0));
    let first = gain.compare_and_set(0, &1.5).unwrap();
    assert_eq!((gain.get().unwrap(), gain.revision()), (Some(1.5), first));
    assert!(matches!(gain.compare_and_set(0, &2.0), Err(Error::Conflict { .. })));
    let second = gain.set(&2.5).unwrap();
    let mut other = gain.clone();
    assert_eq!((other.get().unwrap(), other.revision()), (Some(2.5), second));
    gain.state().delete("/arm/gain").unwrap();
    assert_eq!((gain.get().unwrap(), gain.revision()), (None, 0));
    state.set("/arm/gain", "text").unwrap();
    assert!(refusal(gain.get()).contains("/arm/gain holds a string, not a float"));
    assert!(refusal(gain.set(&1.0)).contains("/arm/gain holds a string, not a float"));
    assert!(format!("{gain:?}").contains("/arm/gain"));
}

#[test]
fn cells_of_every_type() {
    let net = Net::new("cells_of_every_type");
    let state = net.node("n").state().unwrap();
    macro_rules! check {
        ($($type:ty: $value:expr),+ $(,)?) => {$({
            let key = concat!("/", stringify!($type)).replace(['<', '>'], "_");
            let mut cell = state.cell::<$type>(&key).unwrap();
            let value: $type = $value;
            cell.set(&value).unwrap();
            assert_eq!(cell.get().unwrap(), Some(value.clone()));
            let revision = cell.revision();
            assert!(cell.compare_and_set(revision, &value).unwrap() > revision);
            let mut transaction = state.transaction();
            transaction.set("/other", Value::from(value.clone())).unwrap();
            assert_eq!(transaction.get_as::<$type>("/other").unwrap(), Some(value));
        })+};
    }
    check!(
        bool: true, i8: -8, i16: -16, i32: -32, i64: i64::MIN, u8: 8, u16: 16, u32: u32::MAX,
        f32: 0.1, f64: 0.1, String: "text".to_owned(), Vec<u8>: vec![1, 2], Value: Value::list([1]),
    );
    let mut small = state.cell::<u8>("/i64").unwrap();
    assert!(refusal(small.get()).contains("-9223372036854775808 does not fit into u8"));
}
