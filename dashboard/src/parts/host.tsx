// Selects the shown host: this one, or another known to the link.

import { useDomain, useHost } from "../domain";

/** `null` is this host. Without other hosts, there is no choice. */
export function HostChoice({ host, set }: { host: string | null; set(host: string | null): void }) {
  const own = useHost();
  const known = [...new Set((useDomain().figures?.hosts ?? []).map((row) => row.host))];
  // A selected host stays selected when it disappears from the list.
  const hosts = host === null || known.includes(host) ? known : [...known, host];
  if (!hosts.length) return null;
  return (
    <select aria-label="Host" value={host ?? ""} onChange={(event) => set(event.currentTarget.value || null)}>
      <option value="">{own}</option>
      {hosts.map((name) => <option key={name} value={name}>{`@${name}`}</option>)}
    </select>
  );
}
