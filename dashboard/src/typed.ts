// Parses user input as JSON.

import type { Json } from "./wire/types";

/** An integer that JavaScript cannot represent exactly. */
export class InexactNumberError extends Error {
  constructor(number: string) {
    super(`${number} has more digits than a page can send: set it in a terminal with rnet`);
  }
}

/** Parses JSON; throws an `InexactNumberError` for a number that JavaScript would round silently. */
export function typed_json(text: string): Json {
  const value = JSON.parse(text);
  for (const number of text.replace(/"(\\.|[^"\\])*"/g, "").match(/[-+.\deE]+/g) ?? []) {
    if (/^-?\d+$/.test(number)) whole(number);
  }
  return value;
}

/** Parses an integer. */
export function whole(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) throw new InexactNumberError(text);
  return value;
}
