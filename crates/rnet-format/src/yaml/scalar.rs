//! What a word of YAML means, by the core schema of YAML 1.2.

use rnet::state::Value;

/// Words that YAML 1.1, and so ROS 2, take for true and false.
const YES: [&str; 4] = ["yes", "on", "y", "true"];
const NO: [&str; 4] = ["no", "off", "n", "false"];

/// A word as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Scalar {
    /// The word without quotes.
    pub text: String,
    /// Without quotes, so that it may be a number.
    pub plain: bool,
    /// The type that is asked for: `str` of `!!str`.
    pub tag: Option<String>,
}

impl Scalar {
    /// A word without quotes.
    pub fn plain(text: &str) -> Scalar {
        Scalar { text: text.to_owned(), plain: true, tag: None }
    }

    /// A bool, number or text; `None` if it says that there is none.
    ///
    /// # Errors
    /// Why it is not what its tag says, or a number without room.
    pub fn value(&self) -> Result<Option<Value>, String> {
        let text = self.text.as_str();
        let not = |what: &str| format!("{text:?} is not a valid {what}");
        let found = match self.tag.as_deref() {
            Some("bool") => Value::Bool(self.yes_or_no().ok_or_else(|| not("bool"))?),
            Some("int") => int_of(text).ok_or_else(|| not("int"))??,
            Some("float") => float_of(text).ok_or_else(|| not("float"))??,
            Some("str") => Value::Str(text.to_owned()),
            Some(other) => return Err(format!("unknown tag !!{other}")),
            None if !self.plain => Value::Str(text.to_owned()),
            None => match text {
                "" | "~" | "null" | "Null" | "NULL" => return Ok(None),
                "true" | "True" | "TRUE" => Value::Bool(true),
                "false" | "False" | "FALSE" => Value::Bool(false),
                _ => match int_of(text) {
                    Some(int) => int?,
                    None => float_of(text).unwrap_or_else(|| Ok(Value::Str(text.to_owned())))?,
                },
            },
        };
        Ok(Some(found))
    }

    /// Whether digits in it are a number: neither quotes nor a tag nor leading zeros say otherwise.
    pub fn may_be_number(&self) -> bool {
        self.plain && self.tag.is_none() && !is_padded(&self.text)
    }

    /// What it says where a bool is wanted.
    pub fn yes_or_no(&self) -> Option<bool> {
        let is = |words: [&str; 4]| words.iter().any(|word| word.eq_ignore_ascii_case(&self.text));
        let quoted = !self.plain && self.tag.is_none();
        (!quoted && (is(YES) || is(NO))).then(|| is(YES))
    }
}

/// Whether digits follow a zero: octal to older readers, decimal to newer ones, and often no number at all.
fn is_padded(bare: &str) -> bool {
    bare.strip_prefix('0').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// A whole number; too large a one is an error and no other number.
fn int_of(text: &str) -> Option<Result<Value, String>> {
    let (digits, radix) = match text.split_at_checked(2) {
        Some(("0x", hex)) => (hex, 16),
        Some(("0o", octal)) => (octal, 8),
        _ => (text, 10),
    };
    let bare = if radix == 10 { digits.strip_prefix(['+', '-']).unwrap_or(digits) } else { digits };
    if bare.is_empty() || !bare.chars().all(|c| c.is_digit(radix)) || radix == 10 && is_padded(bare)
    {
        return None;
    }
    let value = i64::from_str_radix(digits, radix);
    Some(value.map(Value::Int).map_err(|_| format!("{text} does not fit in 64 bits")))
}

/// A number; too large a one is an error and not infinity. Rust reads words such as `inf` and `nan` too, which are text
/// here.
fn float_of(text: &str) -> Option<Result<Value, String>> {
    let (sign, bare) = match text.strip_prefix('-') {
        Some(bare) => (-1.0, bare),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let number = match bare {
        ".inf" | ".Inf" | ".INF" => f64::INFINITY,
        ".nan" | ".NaN" | ".NAN" => f64::NAN,
        _ if bare.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            && bare.chars().all(|c| c.is_ascii_digit() || ".eE+-".contains(c))
            && !is_padded(bare) =>
        {
            let number: f64 = bare.parse().ok()?;
            if number.is_infinite() {
                return Some(Err(format!("{text} does not fit in 64 bits")));
            }
            number
        }
        _ => return None,
    };
    Some(Ok(Value::Float(sign * number)))
}
