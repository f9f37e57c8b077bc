//! Declares a parameter.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use rnet_core::{Error, Result};
use rnet_node::sync::lock;

use super::declare::declare;
use super::description::ParamDescription;
use super::handle::{Inner, Param};
use super::kind::ParamKind;
use super::param_keys::{ParamKeys, display_name};
use super::refused_value::RefusedValue;
use super::types::{ParamNumber, ParamText, ParamType};
use crate::State;

type OnChange<T> = Box<dyn FnMut(T) + Send>;
type OnRefused = Box<dyn FnOnce(&RefusedValue) + Send>;

/// A builder for a parameter, created by `Node::param` and finished by [`ParamBuilder::declare`].
#[must_use = "the parameter is not declared until declare() is called"]
pub struct ParamBuilder<T: ParamType> {
    state: Result<State>,
    kind: Option<ParamKind>,
    default: Option<T>,
    /// The description so far, with names as given.
    description: ParamDescription,
    on_change: Option<OnChange<T>>,
    on_refused: Option<OnRefused>,
    _type: PhantomData<T>,
}

impl<T: ParamType> ParamBuilder<T> {
    /// A parameter of the node that owns this state. [`ParamBuilder::declare`] returns the error if the state
    /// could not be opened.
    #[doc(hidden)]
    pub fn new(state: Result<State>, name: &str) -> ParamBuilder<T> {
        ParamBuilder {
            state,
            kind: T::KIND,
            default: None,
            description: ParamDescription::new("", name, T::KIND.unwrap_or(ParamKind::Str)),
            on_change: None,
            on_refused: None,
            _type: PhantomData,
        }
    }

    /// The value of an unset parameter. A parameter without a default must be set before its node starts.
    pub fn default(mut self, value: T) -> Self {
        self.default = Some(value);
        self
    }

    /// The minimum of the value, or of each item of a list.
    pub fn min(mut self, least: T::Item) -> Self
    where
        T::Item: ParamNumber,
    {
        self.description.min = Some(least.into());
        self
    }

    /// The maximum of the value, or of each item of a list.
    pub fn max(mut self, most: T::Item) -> Self
    where
        T::Item: ParamNumber,
    {
        self.description.max = Some(most.into());
        self
    }

    /// The allowed values of the parameter, or of each item of a list.
    pub fn choices<S: Into<String>>(mut self, choices: impl IntoIterator<Item = S>) -> Self
    where
        T: ParamText,
    {
        self.description.choices = choices.into_iter().map(Into::into).collect();
        self
    }

    /// The unit of its values, for display.
    pub fn unit(mut self, unit: &str) -> Self {
        self.description.unit = unit.to_owned();
        self
    }

    /// A description for users.
    pub fn description(mut self, text: &str) -> Self {
        self.description.text = text.to_owned();
        self
    }

    /// Makes it read-only while this node runs. It can be set before the node starts.
    pub fn read_only(mut self) -> Self {
        self.description.read_only = true;
        self
    }

    /// Stores its value on disk, so that it survives a power cut, not only the exit of this node.
    pub fn durable(mut self) -> Self {
        self.description.durable = true;
        self
    }

    /// Calls `callback` with each new value from any writer, on the node's thread for state changes, while a
    /// clone of the parameter's handle exists. Setting the same value again is not a change.
    pub fn on_change(mut self, callback: impl FnMut(T) + Send + 'static) -> Self {
        self.on_change = Some(Box::new(callback));
        self
    }

    /// Calls `callback` if the stored value is invalid, so that the parameter gets its default. Without a
    /// callback, a line on stderr reports it; `rnet param list` shows it in either case.
    pub fn on_refused(mut self, callback: impl FnOnce(&RefusedValue) + Send + 'static) -> Self {
        self.on_refused = Some(Box::new(callback));
        self
    }

    /// The kind of its values; for a [`crate::Value`] without a default, whose type does not determine the
    /// kind.
    pub fn kind(mut self, kind: ParamKind) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Declares the parameter. A stored value is kept if it is valid; otherwise the parameter gets its
    /// default, and this is reported ([`ParamBuilder::on_refused`]).
    ///
    /// # Errors
    /// `BadName`; `BadValue` if the description is inconsistent, if this node has declared the parameter with
    /// other rules, if there is neither a valid value nor a default, or if another running node's parameter
    /// has the key (`/b/c` of `/a` and `/c` of `/a/b`); the errors of `Node::state` and of writing state.
    pub fn declare(self) -> Result<Param<T>> {
        let state = self.state?;
        let keys = ParamKeys::new(state.core.state.own.name(), &self.description.name)?;
        let default = self.default.as_ref().map(ParamType::to_value);
        let bad = |why: String| Error::bad_value(display_name(&keys.node, &keys.name), why);
        let kind = self.kind.or(default.as_ref().and_then(ParamKind::of));
        let kind = kind.ok_or_else(|| match &default {
            Some(value) => bad(format!("its default is {}", super::kind::kind_name_of(value))),
            None => bad("it has neither a type nor a default: set one of them".to_owned()),
        })?;
        let (node, name) = (keys.node.clone(), keys.name.clone());
        let mut description = ParamDescription { node, name, kind, ..self.description };
        description.default = default.map(|default| description.adapt(default));
        description.min = description.min.take().map(|min| description.adapt(min));
        description.max = description.max.take().map(|max| description.adapt(max));
        let mut known = lock(&state.shared.declared);
        if let Some(before) = known.get(&keys.key)
            && let Some(difference) = before.difference(&description)
        {
            return Err(bad(format!(
                "this node already declared it with another {difference}; declare it once, or with the same rules"
            )));
        }
        let declared = declare(state.shared.region(), &state.core.state.own, &keys, &description)?;
        known.entry(keys.key.clone()).or_insert_with(|| description.clone());
        drop(known);
        if let Some(refused) = &declared.refused {
            match self.on_refused {
                Some(callback) => callback(refused),
                None => report_refused(&keys, refused, &description),
            }
        }
        let cell = state.cell(&keys.key)?;
        let param = Param {
            inner: Arc::new(Inner {
                default: description.default.clone().and_then(T::from_value),
                state,
                keys,
                description,
                cell: Mutex::new(cell),
                refused: declared.refused,
                watch: Mutex::new(None),
            }),
        };
        if let Some(callback) = self.on_change {
            param.set_callback(declared.revision, callback)?;
        }
        Ok(param)
    }
}

/// Reports to stderr, because no callback handles it.
fn report_refused(keys: &ParamKeys, refused: &RefusedValue, description: &ParamDescription) {
    use std::io::Write;
    let default =
        description.default.as_ref().map(super::description::format_value).unwrap_or_default();
    let RefusedValue { value, why, set_by } = refused;
    // If stderr is closed, nobody reads the report.
    let _ = writeln!(
        std::io::stderr(),
        "rnet: {}: {value}, set by {set_by}, {why}; using the default {default} instead",
        keys.display_name()
    );
}

rnet_node::debug_by!([T: ParamType] ParamBuilder<T>, "ParamBuilder", |this| "name": this.description.name);
