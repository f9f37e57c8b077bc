// A form for a message of any type, from the server's description. Unchanged fields are not sent, so that the
// defaults of the type apply.

import { useState } from "preact/hooks";
import { InexactNumberError, typed_json } from "../typed";
import type { Field, Form, Json } from "../wire/types";
import { Icon } from "./icons";

export type Values = { [name: string]: Json };

export function MessageForm({ form, values, set, off }: { form: Form; values: Values; set(values: Values): void; off: boolean }) {
  if (!form.fields?.length) return <p class="dim">{form.type} has no fields: there is nothing to fill in.</p>;
  return <Fields fields={form.fields} values={values} set={set} off={off} id="request" />;
}

interface FieldsProps {
  fields: Field[];
  values: Values;
  set(values: Values): void;
  off: boolean;
  id: string;
}

function Fields({ fields, values, set, off, id }: FieldsProps) {
  const put = (name: string, value: Json | undefined) => {
    const next = { ...values };
    if (value === undefined) delete next[name];
    else next[name] = value;
    set(next);
  };
  const oneofs = [...new Set(fields.map((field) => field.oneof).filter((name): name is string => !!name))];
  return (
    <div class="fields">
      {fields.filter((field) => !field.oneof).map((field) => (
        <FieldRow key={field.name} field={field} value={values[field.name]} set={(value) => put(field.name, value)} off={off} id={`${id}-${field.name}`} />
      ))}
      {oneofs.map((name) => (
        <OneOf key={name} name={name} fields={fields.filter((field) => field.oneof === name)} values={values} set={set} off={off} id={`${id}-${name}`} />
      ))}
    </div>
  );
}

function OneOf({ name, fields, values, set, off, id }: FieldsProps & { name: string }) {
  const chosen = fields.find((field) => field.name in values);
  const choose = (next: string) => {
    const rest = Object.fromEntries(Object.entries(values).filter(([key]) => !fields.some((field) => field.name === key)));
    const field = fields.find((field) => field.name === next);
    set(field ? { ...rest, [next]: fresh({ ...field, oneof: null }) } : rest);
  };
  return (
    <div class="field">
      <label for={id}>{name}</label>
      <div>
        <select id={id} value={chosen?.name ?? ""} disabled={off} onChange={(event) => choose(event.currentTarget.value)}>
          <option value="">none</option>
          {fields.map((field) => <option key={field.name} value={field.name}>{field.name}</option>)}
        </select>
        {chosen && <FieldRow field={chosen} value={values[chosen.name]} set={(value) => set({ ...values, [chosen.name]: value ?? fresh(chosen) })} off={off} id={`${id}-${chosen.name}`} />}
      </div>
    </div>
  );
}

function FieldRow({ field, value, set, off, id }: { field: Field; value: Json | undefined; set(value: Json | undefined): void; off: boolean; id: string }) {
  const nested = field.type === "message" || field.list || field.map;
  return (
    <div class={nested ? "field nested" : "field"}>
      <label for={nested ? undefined : id} title={field.doc ?? undefined}>
        {field.name} <span class="dim">{type_of(field)}</span>
      </label>
      <div>
        {field.map ? (
          <JsonInput value={value} set={set} off={off} id={id} label={field.name} hint='{"key": value}' />
        ) : field.list ? (
          <List field={field} value={value} set={set} off={off} id={id} />
        ) : (
          <Value field={field} value={value} set={set} off={off} id={id} />
        )}
        {field.doc && <span class="dim doc">{field.doc}</span>}
      </div>
    </div>
  );
}

function type_of(field: Field): string {
  const type = field.message_type ?? field.type;
  if (field.map) return `map of ${type}`;
  if (typeof field.list === "number") return `${field.list} × ${type}`;
  return field.list ? `list of ${type}` : type;
}

function List({ field, value, set, off, id }: { field: Field; value: Json | undefined; set(value: Json | undefined): void; off: boolean; id: string }) {
  const items = Array.isArray(value) ? value : [];
  const item = { ...field, list: false };
  const length = typeof field.list === "number" ? field.list : null;
  const simple = field.type !== "message";
  // Numbers are faster to type as [1, 2, 3] than in separate fields.
  if (simple) return <JsonInput value={value} set={set} off={off} id={id} label={field.name} hint={length === null ? "[1, 2, 3]" : `[…], ${length} items`} />;
  return (
    <ol class="items">
      {items.map((one, i) => (
        <li key={i}>
          <Value field={item} value={one} set={(next) => set(items.map((old, k) => (k === i ? (next ?? fresh(item)) : old)))} off={off} id={`${id}-${i}`} />
          <button type="button" class="quiet small" disabled={off} aria-label={`Remove item ${i} of ${field.name}`} onClick={() => set(items.length > 1 ? items.filter((_old, k) => k !== i) : undefined)}><Icon name="close" /></button>
        </li>
      ))}
      <li><button type="button" disabled={off || (length !== null && items.length >= length)} onClick={() => set([...items, fresh(item)])}>Add to {field.name}</button></li>
    </ol>
  );
}

function fresh(field: Field): Json {
  if (field.type === "message") return {};
  if (field.type === "bool") return false;
  if (field.type === "enum") return field.values?.[0]?.name ?? 0;
  if (/^(string|bytes|timestamp|duration)$/.test(field.type)) return "";
  return 0;
}

const WIDE = /^u?int64$/;

function Value({ field, value, set, off, id }: { field: Field; value: Json | undefined; set(value: Json | undefined): void; off: boolean; id: string }) {
  if (field.type === "message") {
    if (!field.fields) return <JsonInput value={value} set={set} off={off} id={id} label={field.name} hint="{…}" />;
    const inside = value && typeof value === "object" && !Array.isArray(value) ? (value as Values) : {};
    return <Fields fields={field.fields} values={inside} set={(next) => set(Object.keys(next).length ? next : undefined)} off={off} id={id} />;
  }
  if (field.type === "bool") return <input id={id} type="checkbox" checked={value === true} disabled={off} onChange={(event) => set(event.currentTarget.checked)} />;
  if (field.type === "enum") {
    return (
      <select id={id} value={String(value ?? field.default ?? field.values?.[0]?.name ?? "")} disabled={off} onChange={(event) => set(event.currentTarget.value)}>
        {field.values?.map((one) => <option key={one.name} value={one.name}>{one.name}</option>)}
      </select>
    );
  }
  if (/^(u?int|float)/.test(field.type)) {
    const put = (text: string) => set(text.trim() === "" ? undefined : WIDE.test(field.type) ? text.trim() : Number(text));
    return <input id={id} type="number" step={field.type.startsWith("float") ? "any" : 1} min={field.type.startsWith("u") ? 0 : undefined} placeholder={String(field.default ?? 0)} value={value == null ? "" : String(value)} disabled={off} onInput={(event) => put(event.currentTarget.value)} />;
  }
  const hints: Record<string, string> = { timestamp: "2026-01-31T12:00:00Z", duration: "1.5s", bytes: "base64" };
  return <input id={id} type="text" placeholder={hints[field.type] ?? String(field.default ?? "")} value={value == null ? "" : String(value)} disabled={off} onInput={(event) => set(event.currentTarget.value || undefined)} />;
}

function JsonInput({ value, set, off, id, label, hint }: { value: Json | undefined; set(value: Json | undefined): void; off: boolean; id: string; label: string; hint: string }) {
  const [typed, set_typed] = useState<string | null>(null);
  const [wrong, set_wrong] = useState<string | null>(null);
  return (
    <>
      <input
        id={id}
        type="text"
        aria-label={label}
        aria-invalid={wrong !== null}
        placeholder={hint}
        disabled={off}
        value={typed ?? (value === undefined ? "" : JSON.stringify(value))}
        onInput={(event) => {
          const text = event.currentTarget.value;
          set_typed(text);
          try {
            set(text.trim() ? typed_json(text) : undefined);
            set_wrong(null);
          } catch (error) {
            set_wrong(error instanceof InexactNumberError ? `${error.message}, or write it in quotes` : `not valid JSON, such as ${hint}`);
          }
        }}
        onBlur={() => !wrong && set_typed(null)}
      />
      {wrong && <span class="bad">{wrong}</span>}
    </>
  );
}
