import { Picture } from "../draw/picture";
import { Head, NodeLink, Panel, Waiting } from "../parts/common";
import * as units from "../units";
import type { Frame } from "../wire/types";
import { useSub } from "../wire/use";

export function Transforms() {
  const { data, error } = useSub<{ frames: Frame[] }>({ what: "tf", hz: 2 });
  const frames = data?.frames ?? [];
  const empty = data !== null && frames.length === 0;
  return (
    <>
      <Head title="Transforms" note={frames.length ? units.plural(frames.length, "frame") : undefined} />
      {!data && <Waiting error={error} what="the first transforms" />}
      {empty && (
        <p class="empty">No transforms yet: they come from topics of the types <code>foxglove.FrameTransform</code> and <code>foxglove.FrameTransforms</code>.</p>
      )}
      <div class={frames.length ? "columns" : "hidden"}>
        <Panel class="flush"><Picture kind="tf" /></Panel>
        <Panel title="Frames">
          <ul class="tree">{roots(frames).map((root) => <Branch key={root} name={root} frames={frames} above={[]} />)}</ul>
        </Panel>
      </div>
    </>
  );
}

function roots(frames: Frame[]): string[] {
  const children = new Set(frames.map((frame) => frame.frame));
  const tops = [...new Set(frames.map((frame) => frame.parent))].filter((parent) => !children.has(parent));
  // Frames that are not reachable from a root are in a cycle of parents.
  const seen = new Set<string>();
  const see = (name: string) => {
    if (seen.has(name)) return;
    seen.add(name);
    for (const frame of frames) if (frame.parent === name) see(frame.frame);
  };
  tops.forEach(see);
  for (const { frame } of frames) {
    if (seen.has(frame)) continue;
    tops.push(frame);
    see(frame);
  }
  return tops;
}

/** A frame that is its own ancestor, in a cycle of parents, is shown once. */
function Branch({ name, frames, above }: { name: string; frames: Frame[]; above: string[] }) {
  const own = frames.find((frame) => frame.frame === name);
  const here = [...above, name];
  const children = frames.filter((frame) => frame.parent === name && !here.includes(frame.frame));
  return (
    <li>
      <span class="key">{name}</span>
      {own && <span class="dim figures"> {own.translation.map((v) => v.toFixed(3)).join("  ")} m · <NodeLink name={own.node} /></span>}
      {children.length > 0 && <ul>{children.map((child) => <Branch key={child.frame} name={child.frame} frames={frames} above={here} />)}</ul>}
    </li>
  );
}
