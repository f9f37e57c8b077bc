//! Python objects to JSON text.
//!
//! `json.dumps` would do it but for what it lets pass: it writes `NaN`, which is no JSON, and makes
//! `{1: 2}` a `{"1": 2}`, which reads back as something else. What cannot come back as it went in is
//! refused here, and the error says where it stands: `["steps"][3] is a set`.

use std::fmt::Write;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// Deepest nesting of dicts and lists that is written. Readers in other languages have limits too,
/// and a list that contains itself is to be an error and no crash.
pub(crate) const MAX_DEPTH: usize = 100;

/// The text of an object: dicts with str keys, lists, tuples (which become lists), str, int, finite
/// float, bool and None.
///
/// # Errors
/// `TypeError` or `ValueError`, with the place.
pub(crate) fn text(object: &Bound<'_, PyAny>) -> PyResult<String> {
    let mut writer = Writer { out: String::new(), path: Vec::new() };
    writer.value(object)?;
    Ok(writer.out)
}

enum Step {
    Key(String),
    Index(usize),
}

struct Writer {
    out: String,
    /// Where it is, for errors; its length is the depth.
    path: Vec<Step>,
}

impl Writer {
    fn value(&mut self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        if object.is_none() {
            self.out.push_str("null");
        } else if let Ok(text) = object.cast::<PyString>() {
            self.string(text)?;
        } else if let Ok(yes) = object.cast::<PyBool>() {
            self.out.push_str(if yes.is_true() { "true" } else { "false" });
        } else if object.is_instance_of::<PyFloat>() {
            self.float(object.extract()?)?;
        } else if object.is_instance_of::<PyInt>() {
            self.int(object)?;
        } else if let Ok(dict) = object.cast::<PyDict>() {
            self.dict(dict)?;
        } else if let Ok(list) = object.cast::<PyList>() {
            self.items(list.iter())?;
        } else if let Ok(tuple) = object.cast::<PyTuple>() {
            self.items(tuple.iter())?;
        } else {
            let name = object.get_type().fully_qualified_name()?;
            return Err(PyTypeError::new_err(format!(
                "{} is a {name}, which JSON has not: dicts and lists hold str, int, float, bool, \
                 None, dicts and lists",
                self.place()
            )));
        }
        Ok(())
    }

    fn float(&mut self, number: f64) -> PyResult<()> {
        if !number.is_finite() {
            let why = format!("{} is {number}, which JSON has not", self.place());
            return Err(PyValueError::new_err(why));
        }
        // The shortest text that reads back as the same number, and never one of an integer.
        let _ = write!(self.out, "{number:?}");
        Ok(())
    }

    fn int(&mut self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        match object.extract::<i64>() {
            Ok(number) => {
                let _ = write!(self.out, "{number}");
            }
            // By way of int itself: a class derived from it may be shown as something else.
            Err(_) => {
                let plain = object.py().get_type::<PyInt>().call1((object,))?;
                self.out.push_str(plain.str()?.to_str()?);
            }
        }
        Ok(())
    }

    fn dict(&mut self, dict: &Bound<'_, PyDict>) -> PyResult<()> {
        self.check_depth()?;
        self.out.push('{');
        for (n, (key, value)) in dict.iter().enumerate() {
            let Ok(key) = key.cast::<PyString>() else {
                let shown = key.repr()?;
                return Err(PyTypeError::new_err(format!(
                    "{} has the key {shown}: keys of JSON objects are str",
                    self.place()
                )));
            };
            if n > 0 {
                self.out.push(',');
            }
            self.string(key)?;
            self.out.push(':');
            self.inside(Step::Key(key.to_string()), &value)?;
        }
        self.out.push('}');
        Ok(())
    }

    fn items<'py>(&mut self, items: impl Iterator<Item = Bound<'py, PyAny>>) -> PyResult<()> {
        self.check_depth()?;
        self.out.push('[');
        for (n, value) in items.enumerate() {
            if n > 0 {
                self.out.push(',');
            }
            self.inside(Step::Index(n), &value)?;
        }
        self.out.push(']');
        Ok(())
    }

    fn inside(&mut self, step: Step, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.path.push(step);
        self.value(value)?;
        self.path.pop();
        Ok(())
    }

    fn check_depth(&self) -> PyResult<()> {
        if self.path.len() < MAX_DEPTH {
            return Ok(());
        }
        let why = format!("it is nested more than {MAX_DEPTH} levels deep, or contains itself");
        Err(PyValueError::new_err(why))
    }

    fn string(&mut self, text: &Bound<'_, PyString>) -> PyResult<()> {
        let Ok(text) = text.to_str() else {
            let why = format!("{} is a str with a lone surrogate, which is no text", self.place());
            return Err(PyValueError::new_err(why));
        };
        self.out.push_str(&serde_json::Value::from(text).to_string());
        Ok(())
    }

    /// Where the writer is, as one would write it in Python: `["steps"][3]`.
    fn place(&self) -> String {
        if self.path.is_empty() {
            return "the value".to_owned();
        }
        let mut text = String::new();
        for step in &self.path {
            let _ = match step {
                Step::Key(key) => write!(text, "[{key:?}]"),
                Step::Index(at) => write!(text, "[{at}]"),
            };
        }
        text
    }
}
