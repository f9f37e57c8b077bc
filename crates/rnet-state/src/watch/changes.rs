//! Iterating over the changes of a watch.

use rnet_core::{Error, Result};

use super::Watch;
use crate::Change;

/// An iterator over the changes of a [`Watch`]; created by [`Watch::iter`].
#[derive(Debug)]
pub struct Changes<'a> {
    watch: &'a mut Watch,
}

impl Changes<'_> {
    pub(super) fn of(watch: &mut Watch) -> Changes<'_> {
        Changes { watch }
    }
}

impl Iterator for Changes<'_> {
    type Item = Result<Change>;

    fn next(&mut self) -> Option<Result<Change>> {
        match self.watch.recv() {
            Err(Error::Closed { .. }) => None,
            other => Some(other),
        }
    }
}
