//! robot-net's state as a store: by `State`, and by `Cell`.

use bench_harness::spec::Call;
use bench_harness::{About, Broker, Error, KeyValue, KeyValueClient, Net, Result};
use rnet::state::{Cell, State};
use rnet::{Error as RnetError, Node};
use std::path::Path;

/// The number of the process, so that each client is a node of its own name.
fn node(net: &Net) -> Result<Node> {
    let name = format!("client_{}", std::process::id());
    Ok(Node::builder(&name).dir(&net.dir).domain("bench").open()?)
}

fn state_settings() -> Vec<String> {
    vec!["its directory on /dev/shm, as is its default".into()]
}

/// Any value of any key.
pub struct Generic;

impl KeyValue for Generic {
    fn id(&self) -> &'static str {
        "rnet-state"
    }

    fn about(&self) -> About {
        let mut settings = state_settings();
        settings.extend([
            "counters: add is State::add; compare-and-set is State::entry, then compare_and_set with its revision".into(),
            "durable: put(key).durable(true), its file on the real disk".into(),
        ]);
        About { label: "robot-net state".into(), client: "rnet, State (Rust)".into(), settings }
    }

    fn version(&self) -> Result<String> {
        Ok(rnet::VERSION.into())
    }

    fn supports(&self, _call: Call, _durable: bool) -> Result<()> {
        Ok(())
    }

    fn broker(&self, _dir: &Path, _disk: Option<&Path>, _port: u16) -> Option<Broker> {
        None
    }

    fn open(&self, net: &Net) -> Result<Box<dyn KeyValueClient>> {
        let node = node(net)?;
        let (state, durable) = (node.state()?, net.disk.is_some());
        Ok(Box::new(StateClient { state, durable, _node: node }))
    }
}

struct StateClient {
    state: State,
    durable: bool,
    // Closed after its state.
    _node: Node,
}

/// A counter is never negative.
fn whole(number: i64) -> Result<u64> {
    Ok(u64::try_from(number)?)
}

impl KeyValueClient for StateClient {
    fn set(&mut self, key: &str, value: &[u8]) -> Result<()> {
        if self.durable {
            self.state.put(key).durable(true).set(value)?;
        } else {
            self.state.set(key, value)?;
        }
        Ok(())
    }

    fn get(&mut self, key: &str, seen: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        let value = self.state.get(key)?;
        seen(value.as_ref().and_then(|value| value.as_bytes()));
        Ok(())
    }

    fn add_one(&mut self, key: &str) -> Result<()> {
        self.state.add(key, 1)?;
        Ok(())
    }

    fn compare_and_add_one(&mut self, key: &str) -> Result<u64> {
        let mut tries = 0;
        loop {
            tries += 1;
            let (number, revision) = match self.state.entry(key)? {
                Some(entry) => {
                    let number = entry.value.as_int();
                    (number.ok_or_else(|| Error::new("it holds no number"))?, entry.revision)
                }
                None => (0, 0),
            };
            match self.state.compare_and_set(key, revision, number + 1) {
                Ok(_) => return Ok(tries),
                Err(RnetError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn number(&mut self, key: &str) -> Result<u64> {
        whole(self.state.get_as::<i64>(key)?.unwrap_or(0))
    }
}

/// One key, kept at hand for a loop.
pub struct Kept;

impl KeyValue for Kept {
    fn id(&self) -> &'static str {
        "rnet-cell"
    }

    fn about(&self) -> About {
        let mut settings = state_settings();
        settings.push("a Cell for the key, opened once".into());
        settings.push(
            "counters: compare-and-set is Cell::get, then compare_and_set with Cell::revision"
                .into(),
        );
        About {
            label: "robot-net state, cell".into(),
            client: "rnet, Cell (Rust)".into(),
            settings,
        }
    }

    fn version(&self) -> Result<String> {
        Ok(rnet::VERSION.into())
    }

    fn supports(&self, call: Call, durable: bool) -> Result<()> {
        match call {
            Call::Add => Err(Error::new("a cell has no addition of its own: State::add")),
            _ if durable => Err(Error::new("whether a value is durable is said by State::put")),
            _ => Ok(()),
        }
    }

    fn broker(&self, _dir: &Path, _disk: Option<&Path>, _port: u16) -> Option<Broker> {
        None
    }

    fn open(&self, net: &Net) -> Result<Box<dyn KeyValueClient>> {
        let node = node(net)?;
        Ok(Box::new(CellClient {
            bytes: None,
            number: None,
            value: Vec::new(),
            state: node.state()?,
            _node: node,
        }))
    }
}

struct CellClient {
    /// The cells last used: a workload's phase has one key.
    bytes: Option<Cell<Vec<u8>>>,
    number: Option<Cell<i64>>,
    /// The value to set, in the type of the cell.
    value: Vec<u8>,
    state: State,
    _node: Node,
}

/// The cell of this key; another key gets another cell.
fn cell<'a, T: rnet::state::StateType>(
    state: &State,
    kept: &'a mut Option<Cell<T>>,
    key: &str,
) -> Result<&'a mut Cell<T>> {
    if kept.as_ref().is_none_or(|cell| cell.key() != key) {
        *kept = Some(state.cell(key)?);
    }
    kept.as_mut().ok_or_else(|| Error::new("the cell was just made"))
}

impl KeyValueClient for CellClient {
    fn set(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.value.clear();
        self.value.extend_from_slice(value);
        cell(&self.state, &mut self.bytes, key)?.set(&self.value)?;
        Ok(())
    }

    fn get(&mut self, key: &str, seen: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        let value = cell(&self.state, &mut self.bytes, key)?.get()?;
        seen(value.as_deref());
        Ok(())
    }

    fn compare_and_add_one(&mut self, key: &str) -> Result<u64> {
        let cell = cell(&self.state, &mut self.number, key)?;
        let mut tries = 0;
        loop {
            tries += 1;
            let (number, revision) = match cell.get()? {
                Some(number) => (number, cell.revision()),
                None => (0, 0),
            };
            match cell.compare_and_set(revision, &(number + 1)) {
                Ok(_) => return Ok(tries),
                Err(RnetError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn number(&mut self, key: &str) -> Result<u64> {
        whole(cell(&self.state, &mut self.number, key)?.get()?.unwrap_or(0))
    }
}
