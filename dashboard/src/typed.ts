// What people type, as JSON.

import type { Json } from "./wire/types";

/** A whole number that a page would send as another one. */
export class InexactNumberError extends Error {
  constructor(number: string) {
    super(`${number} has more digits than a page can send: set it in a terminal with rnet`);
  }
}

/** `text` as JSON; an `InexactNumberError` in place of a number that JavaScript would round in silence. */
export function typed_json(text: string): Json {
  const value = JSON.parse(text);
  for (const number of text.replace(/"(\\.|[^"\\])*"/g, "").match(/[-+.\deE]+/g) ?? []) {
    if (/^-?\d+$/.test(number)) whole(number);
  }
  return value;
}

/** A whole number as it was typed. */
export function whole(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) throw new InexactNumberError(text);
  return value;
}
