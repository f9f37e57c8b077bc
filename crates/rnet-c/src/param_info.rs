//! The parameters of all nodes, as tools list them.

use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;

use rnet::param::{ParamDescription, ParamInfo, RefusedValue};
use rnet::state::Value;
use rnet::{NodeName, Param};

use crate::border::{enter, free, give, given};
use crate::bytes::text;
use crate::error::{rnet_code, rnet_error};
use crate::state::{rnet_state, state_of};
use crate::state_value::{optional_view, rnet_value};
use crate::texts::Texts;

/// A parameter of any node. New versions of the library add fields at its end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_param_info {
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

/// A parameter as C sees it, and what that points to.
pub(crate) struct ParamView {
    pub(crate) info: rnet_param_info,
    texts: Texts,
    /// Shared, because the view points to its values.
    _values: Arc<(Option<ParamDescription>, Option<Value>)>,
}

impl ParamView {
    pub(crate) fn of_param(param: &Param<Value>) -> ParamView {
        let mut description = param.description().clone();
        description.refused = param.refused().cloned();
        ParamView::new(param.key(), Some(description), None)
    }

    fn of_info(info: &ParamInfo) -> ParamView {
        let mut view = ParamView::new(&info.key, info.description.clone(), info.value().cloned());
        view.info.is_default = info.is_default;
        view.info.problem = view.texts.add_optional(info.problem.as_deref());
        view
    }

    fn new(key: &str, about: Option<ParamDescription>, value: Option<Value>) -> ParamView {
        let mut texts = Texts::default();
        let values = Arc::new((about, value));
        let about = values.0.as_ref();
        let mut text = |get: fn(&ParamDescription) -> &str| texts.add(about.map_or("", get));
        let (node, name) = (text(|about| &about.node), text(|about| &about.name));
        let kind = text(|about| about.kind.name());
        let (unit, description) = (text(|about| &about.unit), text(|about| &about.text));
        let (choices, choice_count) = texts.add_all(about.map_or(&[][..], |about| &about.choices));
        let refused = about.and_then(|about| about.refused.as_ref());
        let mut refused = |get: fn(&RefusedValue) -> &str| texts.add_optional(refused.map(get));
        let limit =
            |get: fn(&ParamDescription) -> Option<&Value>| optional_view(about.and_then(get));
        let info = rnet_param_info {
            node,
            name,
            kind,
            value: optional_view(values.1.as_ref()),
            default_value: limit(|about| about.default.as_ref()),
            min: limit(|about| about.min.as_ref()),
            max: limit(|about| about.max.as_ref()),
            choices,
            choice_count,
            unit,
            description,
            read_only: about.is_some_and(|about| about.read_only),
            durable: about.is_some_and(|about| about.durable),
            is_default: false,
            problem: ptr::null(),
            refused_value: refused(|refused| &refused.value),
            refused_why: refused(|refused| &refused.why),
            refused_by: refused(|refused| &refused.set_by),
            key: texts.add(key),
        };
        ParamView { info, texts, _values: values }
    }
}

/// Parameters, sorted by key. Any thread may read it.
pub struct rnet_param_list(Vec<ParamView>);

/// The parameters of all nodes of the domain or of the other host, declared or only set, sorted by key. The caller frees
/// the list.
///
/// Errors: for another host as rnet_state_list().
///
/// # Safety
/// `state` is a state, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_params(
    state: *const rnet_state,
    out: *mut *mut rnet_param_list,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let params = unsafe { given(state, "state") }?.params()?;
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_param_list(params.iter().map(ParamView::of_info).collect())) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
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

/// A parameter of a list, valid as long as the list; null if there is none at this index.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_param_list_get(
    list: Option<&rnet_param_list>,
    index: usize,
) -> *const rnet_param_info {
    list.and_then(|list| list.0.get(index)).map_or(ptr::null(), |param| &raw const param.info)
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
