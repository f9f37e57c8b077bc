//! The parameters of all nodes, as tools list them.

use std::ffi::{CString, c_char};
use std::ptr;

use rnet::param::{ParamDescription, ParamInfo, RefusedValue};
use rnet::state::Value;
use rnet::{NodeName, Param};

use crate::border::{enter, free, give, given};
use crate::bytes::text;
use crate::error::{c_text, invalid, rnet_code, rnet_error};
use crate::options::{fill, options};
use crate::state::{rnet_state, state_of};
use crate::state_value::{optional_view, rnet_value};

options!(rnet_param_info);

/// A parameter of any node. Initialise it with RNET_PARAM_INFO_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_param_info {
    /// sizeof(rnet_param_info), set by the initialiser.
    pub struct_size: usize,
    /// Its key in the state: "/params/arm/gain".
    pub key: *const c_char,
    /// The node that declared it: "/arm"; "" if none has, and then the rest except `value` is unset, too.
    pub node: *const c_char,
    /// Its name in that node: "/gain".
    pub name: *const c_char,
    /// The type of its values, as in rnet_param_options.
    pub kind: *const c_char,
    /// Its current value; null if it has none.
    pub value: *const rnet_value,
    /// The value of an unset parameter; null: none.
    pub default_value: *const rnet_value,
    /// The minimum; null: none.
    pub min: *const rnet_value,
    /// The maximum; null: none.
    pub max: *const rnet_value,
    /// The allowed texts.
    pub choices: *const *const c_char,
    /// Number of allowed texts; 0: all are allowed.
    pub choice_count: usize,
    /// The unit; "" if it has none.
    pub unit: *const c_char,
    /// The description for users; "" if it has none.
    pub description: *const c_char,
    /// Whether it cannot be set while its node runs.
    pub read_only: bool,
    /// Whether its value survives a power cut.
    pub durable: bool,
    /// Whether it is unset, so that it has its default.
    pub is_default: bool,
    /// Why its declaration cannot be read; null if it can.
    pub problem: *const c_char,
    /// The stored value that its node has found and that is not allowed, as text; null: none.
    pub refused_value: *const c_char,
    /// Why that is not allowed: "is above its maximum 10.0".
    pub refused_why: *const c_char,
    /// The node that has set that.
    pub refused_by: *const c_char,
}

/// A parameter as C sees it.
pub(crate) struct Row {
    key: CString,
    /// Node, name, kind, unit, description.
    texts: [CString; 5],
    choices: Vec<CString>,
    choice_pointers: Vec<*const c_char>,
    description: Option<ParamDescription>,
    value: Option<Value>,
    is_default: bool,
    problem: Option<CString>,
    /// Value, reason, node.
    refused: Option<[CString; 3]>,
}

impl Row {
    pub(crate) fn of_param(param: &Param<Value>) -> Row {
        let mut description = param.description().clone();
        description.refused = param.refused().cloned();
        Row::new(param.key(), Some(description))
    }

    fn of_info(info: &ParamInfo) -> Row {
        Row {
            value: info.value().cloned(),
            is_default: info.is_default,
            problem: info.problem.as_deref().map(c_text),
            ..Row::new(&info.key, info.description.clone())
        }
    }

    fn new(key: &str, description: Option<ParamDescription>) -> Row {
        let about = description.as_ref();
        let texts = about.map_or([""; 5], |about| {
            [&about.node, &about.name, about.kind.name(), &about.unit, &about.text]
        });
        let choices = about.map_or(&[][..], |about| &about.choices);
        let choices: Vec<CString> = choices.iter().map(|choice| c_text(choice)).collect();
        let refused = about.and_then(|about| about.refused.as_ref());
        Row {
            key: c_text(key),
            texts: texts.map(c_text),
            choice_pointers: choices.iter().map(|choice| choice.as_ptr()).collect(),
            choices,
            value: None,
            is_default: false,
            problem: None,
            refused: refused.map(|RefusedValue { value, why, set_by, .. }| {
                [value, why, set_by].map(|text| c_text(text))
            }),
            description,
        }
    }

    pub(crate) fn info(&self) -> rnet_param_info {
        let about = self.description.as_ref();
        let refused = |at: usize| self.refused.as_ref().map_or(ptr::null(), |all| all[at].as_ptr());
        let [node, name, kind, unit, description] = self.texts.each_ref().map(|text| text.as_ptr());
        rnet_param_info {
            struct_size: size_of::<rnet_param_info>(),
            key: self.key.as_ptr(),
            node,
            name,
            kind,
            value: optional_view(self.value.as_ref()),
            default_value: optional_view(about.and_then(|about| about.default.as_ref())),
            min: optional_view(about.and_then(|about| about.min.as_ref())),
            max: optional_view(about.and_then(|about| about.max.as_ref())),
            choices: self.choice_pointers.as_ptr(),
            choice_count: self.choices.len(),
            unit,
            description,
            read_only: about.is_some_and(|about| about.read_only),
            durable: about.is_some_and(|about| about.durable),
            is_default: self.is_default,
            problem: self.problem.as_ref().map_or(ptr::null(), |problem| problem.as_ptr()),
            refused_value: refused(0),
            refused_why: refused(1),
            refused_by: refused(2),
        }
    }
}

/// Parameters, sorted by key. Any thread may read it.
pub struct rnet_param_list(Vec<Row>);

impl rnet_param_list {
    pub(crate) fn new(params: impl IntoIterator<Item = ParamInfo>) -> rnet_param_list {
        rnet_param_list(params.into_iter().map(|info| Row::of_info(&info)).collect())
    }
}

/// The parameters of all nodes of the domain, declared or only set. The caller frees the list.
///
/// # Safety
/// `state` is a state, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_params(
    state: *const rnet_state,
    out: *mut *mut rnet_param_list,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || give(out, rnet_param_list::new(state_of(state)?.params()?))) }
}

/// Resets a parameter of any node to its default.
///
/// Errors: RNET_BAD_NAME; RNET_BAD_VALUE if it is not declared, has no default, or is read-only and its node
/// runs.
///
/// # Safety
/// `state` is a state, `node` and `name` are strings, `error` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_reset_param(
    state: *const rnet_state,
    node: *const c_char,
    name: *const c_char,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (node, name) = unsafe { (NodeName::new(text(node, "node")?)?, text(name, "name")?) };
        // SAFETY: as promised by the caller.
        Ok(unsafe { state_of(state) }?.reset_param(&node, name)?)
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Number of parameters; 0 if `list` is null.
///
/// # Safety
/// `list` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_param_list_count(list: *const rnet_param_list) -> usize {
    // SAFETY: as promised by the caller.
    unsafe { list.as_ref() }.map_or(0, |list| list.0.len())
}

/// A parameter of a list. The pointers in it are valid as long as the list.
///
/// Errors: RNET_INVALID_ARGUMENT if there is none at this index.
///
/// # Safety
/// `list` is a list, `out` initialised, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_param_list_get(
    list: *const rnet_param_list,
    index: usize,
    out: *mut rnet_param_info,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let row = unsafe { given(list, "list") }?.0.get(index);
        let row =
            row.ok_or_else(|| invalid(format!("the list does not have a parameter {index}")))?;
        // SAFETY: as promised by the caller.
        unsafe { fill(out, row.info()) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Frees a list. Null is allowed.
///
/// # Safety
/// `list` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_param_list_free(list: *mut rnet_param_list) {
    // SAFETY: as promised by the caller.
    unsafe { free(list) }
}
