//! Compares two message types, field by field.

use super::reserved::Reserved;
use super::{PathNames, TypeComparison, elements_of, field_text, is_closed, join};
use crate::rules::Rule;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor, OneofDescriptor};
use std::collections::HashMap;

impl TypeComparison {
    pub(super) fn messages(
        &mut self,
        path: &str,
        writer: &MessageDescriptor,
        reader: &MessageDescriptor,
    ) {
        let by_writer = Reserved::by_message(writer);
        let by_reader = Reserved::by_message(reader);
        let extensible = Reserved::for_extensions(writer);
        for wf in writer.fields() {
            match reader.get_field(wf.number()) {
                Some(rf) => self.same_number(path, &wf, &rf),
                None => self.writer_only(path, &wf, reader, &by_reader),
            }
        }
        for rf in reader.fields() {
            if writer.get_field(rf.number()).is_none() {
                self.reader_only(path, &rf, writer, (&by_writer, &extensible));
            }
            // Names are unique on both sides, so each pair of numbers is visited once.
            let twin = writer.get_field_by_name(rf.name());
            if let Some(wf) = twin.filter(|wf| wf.number() != rf.number()) {
                let (w, r) = (field_text(&wf), field_text(&rf));
                self.add(Rule::FieldNumber, &join(path, rf.name()), w, r);
            }
        }
        self.oneofs(path, writer, reader);
    }

    fn writer_only(
        &mut self,
        path: &str,
        wf: &FieldDescriptor,
        reader: &MessageDescriptor,
        by_reader: &Reserved,
    ) {
        let at = join(path, wf.name());
        if by_reader.has(wf.number().into(), wf.name()) {
            self.add(Rule::FieldReserved, &at, field_text(wf), "a reserved number or name".into());
        }
        // A field with another number is reported as such.
        if reader.get_field_by_name(wf.name()).is_none() {
            self.add(Rule::FieldWriterOnly, &at, field_text(wf), String::new());
        }
    }

    fn reader_only(
        &mut self,
        path: &str,
        rf: &FieldDescriptor,
        writer: &MessageDescriptor,
        (by_writer, extensible): (&Reserved, &Reserved),
    ) {
        let at = join(path, rf.name());
        if rf.is_required() {
            self.add(Rule::FieldRequired, &at, String::new(), field_text(rf));
        }
        if by_writer.has(rf.number().into(), rf.name()) {
            self.add(Rule::FieldReserved, &at, "a reserved number or name".into(), field_text(rf));
        }
        if extensible.has(rf.number().into(), "") {
            // The writer's extensions are not known here, so their types are unknown.
            self.add(Rule::FieldExtension, &at, "a number for extensions".into(), field_text(rf));
        } else if writer.get_field_by_name(rf.name()).is_none() {
            self.add(Rule::FieldReaderOnly, &at, String::new(), field_text(rf));
        }
    }

    fn same_number(&mut self, path: &str, wf: &FieldDescriptor, rf: &FieldDescriptor) {
        let named = if self.names == PathNames::Writer { wf } else { rf };
        let at = join(path, named.name());
        let texts = || (field_text(wf), field_text(rf));
        if wf.name() != rf.name() {
            let moved = rf.parent_message().get_field_by_name(wf.name()).is_some()
                || wf.parent_message().get_field_by_name(rf.name()).is_some();
            if !moved {
                let (w, r) = texts();
                self.add(Rule::FieldRenamed, &at, w, r);
            }
        } else if wf.json_name() != rf.json_name() {
            let text = |f: &FieldDescriptor| format!("JSON name {:?}", f.json_name());
            self.add(Rule::FieldJsonName, &at, text(wf), text(rf));
        }
        if wf.is_list() != rf.is_list() || wf.is_map() != rf.is_map() {
            let (w, r) = texts();
            self.add(Rule::FieldRepeated, &at, w, r);
            return;
        }
        if wf.is_map() {
            self.maps(&at, wf, rf);
        } else {
            self.types(&at, wf, rf);
        }
    }

    /// Compares the keys and the values of two maps like fields.
    fn maps(&mut self, at: &str, wf: &FieldDescriptor, rf: &FieldDescriptor) {
        let (Kind::Message(w), Kind::Message(r)) = (wf.kind(), rf.kind()) else { return };
        self.types(&format!("{at}[key]"), &w.map_entry_key_field(), &r.map_entry_key_field());
        self.types(at, &w.map_entry_value_field(), &r.map_entry_value_field());
    }

    /// Compares two fields with the same number that are both single, both repeated, or both halves of a map
    /// entry.
    fn types(&mut self, at: &str, wf: &FieldDescriptor, rf: &FieldDescriptor) {
        let (wk, rk) = (wf.kind(), rf.kind());
        let inside = || {
            let many = rf.is_list() || rf.parent_message().is_map_entry();
            if many { elements_of(at) } else { at.to_owned() }
        };
        match (&wk, &rk) {
            (Kind::Message(w), Kind::Message(r)) if wf.is_group() == rf.is_group() => {
                self.enqueue_pair(inside(), w, r);
            }
            (Kind::Enum(w), Kind::Enum(r)) => self.enums(at, w, r),
            (Kind::Message(_), _)
            | (_, Kind::Message(_))
            | (Kind::Enum(_), _)
            | (_, Kind::Enum(_)) => {
                return self.other_type(at, wf, rf);
            }
            _ if wk != rk => return self.other_type(at, wf, rf),
            _ => {}
        }
        let texts = || (field_text(wf), field_text(rf));
        if wf.is_list() && wf.is_packed() != rf.is_packed() {
            let text = |f: &FieldDescriptor| {
                let packed = if f.is_packed() { "packed" } else { "not packed" };
                format!("{} {packed}", field_text(f))
            };
            self.add(Rule::FieldPacked, at, text(wf), text(rf));
        }
        if rf.is_required() && !wf.is_required() {
            let (w, r) = texts();
            self.add(Rule::FieldRequired, at, w, r);
        }
        if !wf.is_list() && wf.supports_presence() != rf.supports_presence() {
            let text = |f: &FieldDescriptor| {
                let presence = if f.supports_presence() { "with" } else { "without" };
                format!("{} {presence} presence", field_text(f))
            };
            self.add(Rule::FieldPresence, at, text(wf), text(rf));
        }
        let single_value = !wf.is_list() && !matches!(wk, Kind::Message(_));
        if single_value && !wf.is_required() {
            // Debug format, so that two NaN are equal.
            let text = |f: &FieldDescriptor| format!("{:?}", f.default_value());
            let (w, r) = (text(wf), text(rf));
            if w != r {
                self.add(Rule::FieldDefault, at, format!("default {w}"), format!("default {r}"));
            }
        }
    }

    fn other_type(&mut self, at: &str, wf: &FieldDescriptor, rf: &FieldDescriptor) {
        let rule = if reads_without_loss(&wf.kind(), &rf.kind(), wf.is_group()) {
            Rule::FieldTypeLossless
        } else {
            Rule::FieldType
        };
        self.add(rule, at, field_text(wf), field_text(rf));
    }

    /// Of the fields of a reader's oneof, only the last one received is kept.
    fn oneofs(&mut self, path: &str, writer: &MessageDescriptor, reader: &MessageDescriptor) {
        let name_of = |oneof: &Option<OneofDescriptor>| match oneof {
            Some(oneof) => format!("oneof {}", oneof.name()),
            None => "no oneof".to_owned(),
        };
        let mut merged: HashMap<String, (Option<OneofDescriptor>, FieldDescriptor)> =
            HashMap::new();
        for wf in writer.fields() {
            let Some(rf) = reader.get_field(wf.number()) else { continue };
            let (w, r) = (real_oneof(&wf), real_oneof(&rf));
            let at =
                join(path, if self.names == PathNames::Writer { wf.name() } else { rf.name() });
            if let Some(r) = &r {
                let first = merged.entry(r.name().to_owned());
                let (first_oneof, first) = first.or_insert_with(|| (w.clone(), wf.clone()));
                let apart = w.is_none() || *first_oneof != w;
                if apart && first.number() != wf.number() {
                    let both = format!("{} and {} independently", first.name(), wf.name());
                    self.add(Rule::OneofMerged, &at, both, format!("oneof {}", r.name()));
                    continue;
                }
            }
            if w.is_some() != r.is_some() {
                self.add(Rule::OneofMoved, &at, name_of(&w), name_of(&r));
            }
        }
    }
}

/// The oneof of a field, unless it only represents the presence of an `optional`.
fn real_oneof(field: &FieldDescriptor) -> Option<OneofDescriptor> {
    field.containing_oneof().filter(|oneof| !oneof.is_synthetic())
}

/// Whether every value of the writer's type arrives unchanged in the reader's, although the types differ. An
/// enum counts as its number, and a message in `bytes` as its bytes.
fn reads_without_loss(writer: &Kind, reader: &Kind, writer_is_group: bool) -> bool {
    use Kind::{Bool, Bytes, Enum, Int32, Int64, Message, Sint32, Sint64, String, Uint32, Uint64};
    match (writer, reader) {
        (Int32, Int64) | (Sint32, Sint64) | (Uint32, Uint64 | Int64) => true,
        (Bool, Int32 | Int64 | Uint32 | Uint64) => true,
        (Enum(_), Int32 | Int64) => true,
        (Int32 | Bool, Enum(reader)) => !is_closed(reader),
        (String, Bytes) => true,
        (Message(_), Bytes) => !writer_is_group,
        _ => false,
    }
}
