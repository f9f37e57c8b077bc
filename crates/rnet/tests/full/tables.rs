//! x
use crate::common::Net;
pub(crate) fn publisher_of_a_crowd(_net: &Net) {}
