//! Compares two enums, value by value.

use super::reserved::Reserved;
use super::{TypeComparison, is_closed, short};
use crate::rules::Rule;
use prost_reflect::{EnumDescriptor, EnumValueDescriptor};

fn text(value: &EnumValueDescriptor) -> String {
    format!("{} = {}", value.name(), value.number())
}

impl TypeComparison {
    pub(super) fn enums(&mut self, at: &str, writer: &EnumDescriptor, reader: &EnumDescriptor) {
        let pair = (writer.full_name().to_owned(), reader.full_name().to_owned());
        let reserved = reader.reserved_ranges().len() + reader.reserved_names().len();
        let steps = writer.values().len() + reader.values().len() + reserved + 1;
        if self.seen.contains(&pair) || !self.consume_steps(steps) {
            return;
        }
        if pair.0 != pair.1 {
            let (w, r) = (format!("enum {}", pair.0), format!("enum {}", pair.1));
            let replaced = short(&pair.0) != short(&pair.1) && !same_values(writer, reader);
            let rule = if replaced { Rule::TypeReplaced } else { Rule::TypeRenamed };
            self.add(rule, at, w, r);
            if replaced {
                self.seen.insert(pair);
                return;
            }
        }
        self.seen.insert(pair);
        let losses = self.writer_values(at, writer, reader);
        for rv in reader.values() {
            let value_at = format!("{at}:{}", rv.name());
            match writer.get_value_by_name(rv.name()) {
                Some(wv) if wv.number() != rv.number() => {
                    self.add(Rule::EnumValueNumber, &value_at, text(&wv), text(&rv));
                }
                None if writer.get_value(rv.number()).is_none() => {
                    self.add(Rule::EnumValueReaderOnly, &value_at, String::new(), text(&rv));
                }
                _ => {}
            }
        }
        if is_closed(writer) != is_closed(reader) && !losses {
            let text = |e| (if is_closed(e) { "a closed enum" } else { "an open enum" }).to_owned();
            self.add(Rule::EnumOpenness, at, text(writer), text(reader));
        }
    }

    /// Compares what the writer can send. Returns whether any of it is lost.
    fn writer_values(
        &mut self,
        at: &str,
        writer: &EnumDescriptor,
        reader: &EnumDescriptor,
    ) -> bool {
        let mut losses = false;
        let by_reader = Reserved::by_enum(reader);
        for wv in writer.values() {
            let value_at = format!("{at}:{}", wv.name());
            if let Some(rv) = reader.get_value(wv.number()) {
                let moved = writer.get_value_by_name(rv.name()).is_some()
                    || reader.get_value_by_name(wv.name()).is_some();
                if !moved {
                    self.add(Rule::EnumValueRenamed, &value_at, text(&wv), text(&rv));
                }
                continue;
            }
            if by_reader.has(wv.number().into(), wv.name()) {
                losses = true;
                let reserved = "a reserved number or name".to_owned();
                self.add(Rule::EnumValueRemoved, &value_at, text(&wv), reserved);
            } else if is_closed(reader) {
                losses = true;
                let closed = "a closed enum without it".to_owned();
                self.add(Rule::EnumValueClosed, &value_at, text(&wv), closed);
            } else if reader.get_value_by_name(wv.name()).is_none() {
                self.add(Rule::EnumValueWriterOnly, &value_at, text(&wv), String::new());
            }
        }
        losses
    }
}

fn same_values(a: &EnumDescriptor, b: &EnumDescriptor) -> bool {
    let has = |value: EnumValueDescriptor| {
        b.get_value_by_name(value.name()).is_some_and(|other| other.number() == value.number())
    };
    a.values().len() == b.values().len() && a.values().all(has)
}
