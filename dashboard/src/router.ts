// The current location: `#/topics/%2Fimu?field=x`. The part after `#` is never sent to the server.

import { useEffect, useState } from "preact/hooks";

export interface Place {
  view: string;
  /** The decoded names after the view. */
  rest: string[];
}

export function place(hash = location.hash): Place {
  const [view = "", ...rest] = hash.replace(/^#\/?/, "").split("/").map(decoded);
  return { view: view || "overview", rest };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function href(view: string, ...rest: string[]): string {
  return "#/" + [view, ...rest.map(encodeURIComponent)].join("/");
}

export function usePlace(): Place {
  const [now, set] = useState(place());
  useEffect(() => {
    const changed = () => set(place());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return now;
}
