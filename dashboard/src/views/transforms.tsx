import { Picture } from "../draw/picture";
import { Head, NodeLink, Panel, Waiting } from "../parts/bits";
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
          <ul class="tree">{roots(frames).map((root) => <Branch key={root} name={root} frames={frames} depth={0} />)}</ul>
        </Panel>
      </div>
    </>
  );
}

function roots(frames: Frame[]): string[] {
  const children = new Set(frames.map((frame) => frame.frame));
  const tops = [...new Set(frames.map((frame) => frame.parent))].filter((parent) => !children.has(parent));
  return tops.length || !frames.length ? tops : [frames[0]!.parent];
}

const DEEPEST = 30;

function Branch({ name, frames, depth }: { name: string; frames: Frame[]; depth: number }) {
  const own = frames.find((frame) => frame.frame === name);
  const children = depth < DEEPEST ? frames.filter((frame) => frame.parent === name && frame.frame !== name) : [];
  return (
    <li>
      <span class="key">{name}</span>
      {own && <span class="dim figures"> {own.translation.map((v) => v.toFixed(3)).join("  ")} m · <NodeLink name={own.node} /></span>}
      {children.length > 0 && <ul>{children.map((child) => <Branch key={child.frame} name={child.frame} frames={frames} depth={depth + 1} />)}</ul>}
    </li>
  );
}
