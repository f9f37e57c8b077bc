//! Reading a number from the state allocates no memory.

use crate::common;

use crate::common::allocator::ALLOCATIONS;
use common::Net;

/// Allocations of a thousand reads, after warm-up reads that may allocate.
fn allocations(mut read: impl FnMut()) -> u64 {
    (0..10).for_each(|_| read());
    let before = ALLOCATIONS.get();
    (0..1000).for_each(|_| read());
    ALLOCATIONS.get() - before
}

#[test]
fn reading_a_number_allocates_nothing() {
    let net = Net::new("reading_a_number_allocates_nothing");
    let state = net.node("n").state().unwrap();
    state.set("/float", 1.5).unwrap();
    state.set("/int", 7).unwrap();
    state.set("/text", "a text of some length").unwrap();
    let mut float = state.cell::<f64>("/float").unwrap();
    let mut int = state.cell::<i64>("/int").unwrap();
    let mut none = state.cell::<bool>("/none").unwrap();
    let cells = allocations(|| {
        assert_eq!((float.get().unwrap(), int.get().unwrap()), (Some(1.5), Some(7)));
        assert_eq!(none.get().unwrap(), None);
    });
    assert_eq!(cells, 0, "of cells");
    let reads = allocations(|| {
        assert_eq!(state.get("/float").unwrap(), Some(1.5.into()));
        assert_eq!(state.get_as::<i64>("/int").unwrap(), Some(7));
        assert_eq!(state.get("/none").unwrap(), None);
    });
    assert_eq!(reads, 0, "of the state");
    let texts = allocations(|| assert!(state.get_as::<String>("/text").unwrap().is_some()));
    assert_eq!(texts, 1000, "the text itself: the counter works");
}

#[test]
fn reading_a_parameter_allocates_nothing() {
    let net = Net::new("reading_a_parameter_allocates_nothing");
    let arm = net.node("arm");
    let gain = arm.param("/gain").default(1.0).declare().unwrap();
    let steps = arm.param("/steps").default(5_i64).declare().unwrap();
    let flag = arm.param("/flag").default(true).declare().unwrap();
    // Deleted, so it returns its default.
    arm.state().unwrap().delete(flag.key()).unwrap();
    let reads = allocations(|| {
        assert_eq!((gain.get(), steps.get(), flag.get()), (Ok(1.0), Ok(5), Ok(true)));
    });
    assert_eq!(reads, 0);
}
