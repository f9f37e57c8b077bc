//! x
use crate::common::Net;
pub(crate) fn few_files(_net: &Net) {}
pub(crate) fn little_address_space(_net: &Net) {}
pub(crate) fn few_maps(_net: &Net) {}
pub(crate) fn no_threads(_net: &Net) {}
