//! Decoding into a message that was decoded before, reusing its memory.
//!
//! prost's `clear` and `merge` keep the memory of strings and of lists of numbers, but drop the strings in a
//! list: a JointState costs one allocation per joint name, twice the time of everything else. Generated code
//! lists such fields, and this module decodes them into the existing strings. prost decodes everything else.

use prost::encoding::{DecodeContext, decode_key, string};
use prost::{DecodeError, Message};

/// A field that is a list of strings.
pub struct StringList<T> {
    /// Number of the field.
    pub tag: u32,
    /// The field.
    pub field: fn(&mut T) -> &mut Vec<String>,
}

/// Decodes `bytes` into `message`, replacing its content.
///
/// # Errors
/// As prost: the bytes are not such a message. `message` is then empty.
pub(super) fn decode<T: Message, const N: usize>(
    bytes: &[u8],
    message: &mut T,
    lists: [StringList<T>; N],
) -> Result<(), DecodeError> {
    let kept = lists.each_ref().map(|list| std::mem::take((list.field)(message)));
    message.clear();
    for (list, kept) in lists.iter().zip(kept) {
        *(list.field)(message) = kept;
    }
    let done = merge(message, bytes, &lists);
    if done.is_err() {
        message.clear();
    }
    done
}

fn merge<T: Message, const N: usize>(
    message: &mut T,
    mut bytes: &[u8],
    lists: &[StringList<T>; N],
) -> Result<(), DecodeError> {
    // Number of strings of each list that belong to this message; the rest belong to the message before.
    let mut used = [0; N];
    while !bytes.is_empty() {
        let (tag, wire_type) = decode_key(&mut bytes)?;
        let context = DecodeContext::default();
        match lists.iter().position(|list| list.tag == tag) {
            Some(i) => {
                let list = (lists[i].field)(message);
                if used[i] == list.len() {
                    list.push(String::new());
                }
                // Replaces the old content.
                string::merge(wire_type, &mut list[used[i]], &mut bytes, context)?;
                used[i] += 1;
            }
            None => message.merge_field(tag, wire_type, &mut bytes, context)?,
        }
    }
    for (list, used) in lists.iter().zip(used) {
        (list.field)(message).truncate(used);
    }
    Ok(())
}
