//! `rnet_param`: the parameters of a node.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use rnet::Param;
use rnet::fork::ProcessOwned;
use rnet::param::{ParamBuilder, ParamKind};
use rnet::state::Value;

use crate::border::{enter, free, give, given, write};
use crate::bytes::{optional_text, text};
use crate::callback::{Context, rnet_free_function, rnet_guard};
use crate::error::{Outcome, invalid, rnet_code, rnet_error};
use crate::handle::{Handle, MemberKind, Shared};
use crate::node::{node_of, rnet_node};
use crate::options::{Options, options, set};
use crate::param_info::{ParamView, rnet_param_info};
use crate::state_value::{give_value, optional_value, rnet_value, rnet_value_data, value_of, view};
use crate::texts::texts;

/// Options of rnet_param_declare(). Initialise it with RNET_PARAM_OPTIONS_INIT; 0 and null mean none.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_param_options {
    /// sizeof(rnet_param_options), set by the initialiser.
    pub struct_size: usize,
    /// The type of its values: "bool", "int", "float", "str", "list[bool]", "list[int]", "list[float]" or
    /// "list[str]"; default: that of the default value.
    pub kind: *const c_char,
    /// The value of an unset parameter. Without it, it must be set before its node starts.
    pub default_value: *const rnet_value,
    /// The minimum of the value, or of each item of a list.
    pub min: *const rnet_value,
    /// The maximum of the value, or of each item of a list.
    pub max: *const rnet_value,
    /// The allowed texts of the value, or of each item of a list.
    pub choices: *const *const c_char,
    /// Number of choices; 0: all are allowed.
    pub choice_count: usize,
    /// The unit, for display: "1/s".
    pub unit: *const c_char,
    /// A description for users.
    pub description: *const c_char,
    /// Whether it cannot be set while its node runs.
    pub read_only: bool,
    /// Whether its value survives a power cut.
    pub durable: bool,
    /// Whether not to report on stderr that the stored value is not allowed, so that the parameter has its
    /// default. The value and the reason are in rnet_param_info.
    pub quiet: bool,
    /// Space for options of new versions; 0.
    pub reserved: [u8; 5],
}

options!(rnet_param_options);

impl rnet_param_options {
    /// # Safety
    /// As for rnet_param_declare().
    unsafe fn apply(&self, mut builder: ParamBuilder<Value>) -> Outcome<ParamBuilder<Value>> {
        // SAFETY: each is null or a value, as promised by the caller.
        let [default, min, max] =
            [self.default_value, self.min, self.max].map(|it| unsafe { optional_value(it) });
        // SAFETY: each is null or a string, as promised by the caller.
        let (kind, unit, about) = unsafe {
            (
                optional_text(self.kind, "kind")?,
                optional_text(self.unit, "unit")?,
                optional_text(self.description, "description")?,
            )
        };
        if let Some(name) = kind {
            let kind = ParamKind::of_name(name);
            builder = builder.kind(kind.ok_or_else(|| {
                invalid(format!("{name} is not a type of parameters: use bool, int, float, str or list[...] of one of them"))
            })?);
        }
        builder = set(builder, default.cloned(), ParamBuilder::default);
        builder = set(builder, min.cloned(), ParamBuilder::min);
        builder = set(builder, max.cloned(), ParamBuilder::max);
        // SAFETY: as promised by the caller.
        let choices = unsafe { texts(self.choices, self.choice_count, "choices") }?;
        let choices = Some(choices).filter(|choices| !choices.is_empty());
        builder = set(builder, choices, ParamBuilder::choices);
        builder = builder.unit(unit.unwrap_or_default()).description(about.unwrap_or_default());
        builder = if self.read_only { builder.read_only() } else { builder };
        builder = if self.durable { builder.durable() } else { builder };
        Ok(if self.quiet { builder.on_refused(|_| {}) } else { builder })
    }
}

/// Called with each new value. It belongs to the library, and is valid until the callback returns.
pub type rnet_value_function =
    Option<unsafe extern "C" fn(value: *const rnet_value, context: *mut c_void)>;

/// A parameter of a node. Any thread may use it. Its value outlives the node.
pub struct rnet_param {
    object: Handle<Shared<Param<Value>>>,
    view: ParamView,
}

/// # Safety
/// As [`given`].
unsafe fn param_of(param: *const rnet_param) -> Outcome<Arc<ProcessOwned<Param<Value>>>> {
    // SAFETY: as promised by the caller.
    unsafe { given(param, "param") }?.object.get()
}

/// Declares a parameter of a node: its key in the state is /params/<node>/<name>. A stored value is kept if
/// it is allowed. `on_change` may be null; it is called with each new value of any writer, on a thread of the
/// node, until the parameter is freed. `free_context` is called once with `context` after the last call, also
/// if this function fails. The caller frees the parameter with rnet_param_free().
///
/// Errors: RNET_BAD_NAME; RNET_BAD_VALUE if the options contradict each other or an earlier declaration, or
/// if there is neither a valid value nor a default; those of writing state.
///
/// # Safety
/// `node` is a node, `name` a string, `options` null or initialised, `out` valid for a write, `error` null or
/// valid for a write. The function and the context may be used by other threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_param_declare(
    node: *const rnet_node,
    name: *const c_char,
    options: *const rnet_param_options,
    on_change: rnet_value_function,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_param,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let context = Context::new(context, free_context);
    let body = move || {
        // SAFETY: as promised by the caller.
        let (node, name) = unsafe { (node_of(node)?, text(name, "name")?) };
        // SAFETY: as promised by the caller.
        let options = unsafe { rnet_param_options::read(options) }?;
        // SAFETY: as promised by the caller.
        let mut builder = unsafe { options.apply(node.get()?.param::<Value>(name)) }?;
        let freed = context.freed();
        if let Some(on_change) = on_change {
            builder = builder.on_change(caller(on_change, context));
        } else {
            // Closing the parameter waits until it is freed.
            drop(context);
        }
        let param = builder.declare()?;
        let view = ParamView::of_param(&param);
        let name = format!("parameter {}", param.name());
        let object = node.add(MemberKind::Param, Shared::with_end(name, param, |_| (), freed));
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_param { object, view }) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// A function of C as a callback of the parameter.
fn caller(
    on_change: unsafe extern "C" fn(value: *const rnet_value, context: *mut c_void),
    context: Context,
) -> impl FnMut(Value) + Send + 'static {
    // SAFETY: the caller has passed the function and the context for each other.
    move |value| unsafe { on_change(view(&value), context.pointer()) }
}

/// Calls `on_change` with each new value of any writer, on a thread of the node, until the guard is freed.
/// `free_context` is called once with `context` after the last call, also if this function fails.
///
/// Errors: RNET_LIMIT_REACHED, RNET_OUT_OF_MEMORY, RNET_CLOSED.
///
/// # Safety
/// `param` is a parameter, `out` valid for a write, `error` null or valid for a write. The function and the
/// context may be used by other threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_param_on_change(
    param: *const rnet_param,
    on_change: rnet_value_function,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_guard,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let context = Context::new(context, free_context);
    let body = move || {
        // SAFETY: as promised by the caller.
        let (open, handle) = unsafe { (param_of(param)?, &given(param, "param")?.object) };
        let on_change = on_change.ok_or_else(|| invalid("on_change is null"))?;
        let freed = context.freed();
        let watch = open.on_change(caller(on_change, context))?;
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_guard::new(handle.members(), watch, freed)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The current value, which the caller frees with rnet_value_free().
///
/// Errors: RNET_BAD_VALUE if it has no default and its value was deleted, or if a faulty program has written
/// it; RNET_CLOSED.
///
/// # Safety
/// `param` is a parameter, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_param_get(
    param: *const rnet_param,
    out: *mut *mut rnet_value,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || give_value(out, param_of(param)?.get()?)) }
}

/// The current value of a parameter of kind bool, int or float. It never waits and does not allocate, so that a control
/// loop may call it.
///
/// Errors: RNET_STATE_TYPE if it has another kind; as rnet_param_get().
///
/// # Safety
/// `param` is a parameter, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_param_read(
    param: *const rnet_param,
    out: *mut rnet_value_data,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let param = unsafe { param_of(param) }?;
        let data = rnet_value_data::of_scalar(param.key(), Some(&param.get()?))?;
        // SAFETY: as promised by the caller.
        unsafe { write(out, data) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Sets the value. An integer becomes a float for a parameter of kind float.
///
/// Errors: RNET_BAD_VALUE with the reason if it is not allowed, or the parameter is read-only; as
/// rnet_state_set().
///
/// # Safety
/// `param` is a parameter, `value` a value, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_param_set(
    param: *const rnet_param,
    value: *const rnet_value,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    let body = || unsafe { Ok(param_of(param)?.set(value_of(value, "value")?.clone())?) };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Resets it to its default, as if it had never been set.
///
/// Errors: RNET_BAD_VALUE if it has no default, or is read-only.
///
/// # Safety
/// `param` is a parameter, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_param_reset(
    param: *const rnet_param,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || Ok(param_of(param)?.reset()?)) }
}

/// The declaration of a parameter, valid until the parameter is freed; its `value` is null: see rnet_param_get(). Null if
/// `param` is null.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_param_describe(param: Option<&rnet_param>) -> *const rnet_param_info {
    param.map_or(std::ptr::null(), |param| &raw const param.view.info)
}

/// Ends its callback and frees it; the value stays. When it returns, the callback does not run and is not
/// called again, except within a callback. Null is allowed.
///
/// # Safety
/// `param` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_param_free(param: *mut rnet_param) {
    // SAFETY: as promised by the caller.
    unsafe { free(param) }
}
