// Which host is looked at: this one, or another that the link knows.

import { useDomain, useHost } from "../domain";

/** `null` is this host. There is nothing to choose where no other is known. */
export function HostChoice({ host, set }: { host: string | null; set(host: string | null): void }) {
  const own = useHost();
  const known = [...new Set((useDomain().figures?.hosts ?? []).map((row) => row.host))];
  // One that has gone from the list stays chosen until somebody chooses another.
  const hosts = host === null || known.includes(host) ? known : [...known, host];
  if (!hosts.length) return null;
  return (
    <select aria-label="Host" value={host ?? ""} onChange={(event) => set(event.currentTarget.value || null)}>
      <option value="">{own}</option>
      {hosts.map((name) => <option key={name} value={name}>{`@${name}`}</option>)}
    </select>
  );
}
