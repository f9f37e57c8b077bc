// Draws pictures on a canvas: images, point clouds, laser scans, transforms.

import { useEffect, useRef, useState } from "preact/hooks";
import { on_theme } from "../theme";
import * as units from "../units";
import { wire } from "../wire/socket";
import type { Scale } from "../wire/types";
import { useStream } from "../wire/use";
import { camera, steer, type Camera } from "./camera";
import { cloud_scene, fit_cloud, fit_frames, scan_scene, transforms_scene } from "./scenes";

export type Kind = "image" | "cloud" | "scan" | "tf";

const KINDS: [RegExp, Kind][] = [
  [/(^|\.)(RawImage|CompressedImage|Image)$/, "image"],
  [/(^|\.)PointCloud2?$/, "cloud"],
  [/(^|\.)LaserScan$/, "scan"],
  [/(^|\.)(FrameTransforms?|TFMessage)$/, "tf"],
];

/** The kind of picture for these types, if they can be drawn. */
export function picture_of(types: string[]): Kind | null {
  return KINDS.find(([pattern]) => types.some((type) => pattern.test(type)))?.[1] ?? null;
}

const HEIGHT = 360;
/** Maximum height of an image, in CSS pixels. */
const IMAGE_HEIGHT = 480;

interface Shown {
  data: any;
  payload: ArrayBuffer | null;
}

export function Picture({ kind, topic }: { kind: Kind; topic?: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const frame = useRef<HTMLDivElement>(null);
  const shown = useRef<Shown | null>(null);
  const eye = useRef<Camera>(camera(kind === "scan" ? 12 : kind === "tf" ? 3 : 8));
  const fitted = useRef(false);
  const [caption, set_caption] = useState<string | null>(null);
  const [scale, set_scale] = useState<Scale | null>(null);
  const [error, set_error] = useState<string | null>(null);
  const drawing = useRef(0);
  /** Acknowledgements of the drawn picture, and of pictures that it has replaced. */
  const owed = useRef<(() => void)[]>([]);

  const draw = () => {
    if (drawing.current || !shown.current) return;
    drawing.current = requestAnimationFrame(async () => {
      try {
        if (canvas.current && frame.current) await paint(kind, canvas.current, frame.current.clientWidth, shown.current!, eye.current);
        set_error(null);
      } catch (failed) {
        set_error(`The picture cannot be drawn: ${(failed as Error).message}`);
      }
      drawing.current = 0;
      for (const drawn of owed.current.splice(0)) drawn();
    });
  };
  useEffect(() => {
    // Planar data is shown from above.
    if (kind === "scan") eye.current.rise = 1.25;
    if (kind !== "image") steer(canvas.current!, eye.current, draw);
    const resize = new ResizeObserver(draw);
    resize.observe(frame.current!);
    const off = on_theme(draw);
    // Pictures of a hidden page are neither drawn nor acknowledged, so the server sends no more.
    const look = () => !document.hidden && draw();
    document.addEventListener("visibilitychange", look);
    return () => {
      document.removeEventListener("visibilitychange", look);
      resize.disconnect();
      off();
      cancelAnimationFrame(drawing.current);
    };
  }, []);
  useStream(ask(kind, topic), {
    data(data, payload, drawn) {
      shown.current = { data, payload };
      owed.current.push(drawn);
      if (!fitted.current && kind === "cloud" && payload) fitted.current = fit_cloud(data, payload, eye.current);
      if (!fitted.current && kind === "tf") fitted.current = fit_frames(data.frames, eye.current);
      set_caption(words(kind, data));
      set_scale(data.scale ?? null);
      if (!document.hidden) draw();
    },
    error: (failed) => set_error(failed?.message ?? null),
    restart() {
      shown.current = null;
      owed.current = [];
    },
  });

  const label = caption ?? "waiting for the first";
  return (
    <figure class="picture">
      <div ref={frame}>
        <canvas ref={canvas} role="img" tabIndex={kind === "image" ? undefined : 0} height={HEIGHT} aria-label={`${kind === "tf" ? "transforms" : kind}: ${label}${kind === "image" ? "" : ". Arrow keys turn, + and − zoom"}`} />
      </div>
      {scale && <ScaleLegend scale={scale} />}
      <figcaption>
        {error ? <span class="bad">{error}</span> : caption ?? <span class="dim">Waiting for the first…</span>}
        {kind !== "image" && <span class="dim"> · drag or arrows turn, wheel or + − zoom</span>}
      </figcaption>
    </figure>
  );
}

/** The legend of a depth or 16-bit image. Pixels without a measurement are black. */
function ScaleLegend({ scale: { bright, dark, unit } }: { scale: Scale }) {
  const label = (value: number) => `${units.brief(value)}${unit && ` ${unit}`}`;
  const is_distance = unit !== "";
  return (
    <p class="scale" role="img" aria-label={`brightest ${label(bright)}, darkest ${label(dark)}${is_distance ? ", black not measured" : ""}`}>
      <span>{label(bright)}</span>
      <i class={is_distance ? "distance" : ""} />
      <span>{label(dark)}</span>
      {is_distance && <span class="dim">black: not measured</span>}
    </p>
  );
}

function ask(kind: Kind, topic?: string): Record<string, unknown> {
  if (kind === "tf") return { what: "tf", hz: 5 };
  const limits = wire.hello?.limits ?? {};
  if (kind === "image") {
    const max_px = Math.min(limits.image_px ?? 307_200, Math.ceil(innerWidth * IMAGE_HEIGHT * devicePixelRatio ** 2));
    return { what: "image", topic, hz: 8, max_px, ack: true };
  }
  if (kind === "cloud") return { what: "cloud", topic, hz: 5, max_points: limits.cloud_points ?? 20_000, ack: true };
  return { what: "scan", topic, hz: 8, ack: true };
}

function words(kind: Kind, data: any): string {
  const frame = data.frame_id ? ` · frame ${data.frame_id}` : "";
  if (kind === "image") {
    const small = data.width !== data.full_width ? `, shown as ${data.width} × ${data.height}` : "";
    // The server does not know the size of a compressed image; it is drawn at its own size.
    const size = data.full_width === null ? "" : `${data.full_width} × ${data.full_height} px${small} · `;
    return `${size}${data.pixels ?? data.encoding}${frame} · #${data.seq}`;
  }
  if (kind === "cloud") {
    const part = data.points < data.total_points ? ` of ${units.count(data.total_points)}` : "";
    return `${units.count(data.points)}${part} points${frame} · #${data.seq}`;
  }
  if (kind === "scan") return `${units.count(data.ranges)} ranges, ${degrees(data.angle_min)} to ${degrees(data.angle_max)}${frame} · #${data.seq}`;
  return units.plural(data.frames.length, "frame");
}

function degrees(rad: number): string {
  return `${Math.round((rad * 180) / Math.PI)}°`;
}

async function paint(kind: Kind, canvas: HTMLCanvasElement, width: number, { data, payload }: Shown, eye: Camera): Promise<void> {
  if (kind === "image") return paint_image(canvas, width, data, payload!);
  const ratio = devicePixelRatio || 1;
  const [w, h] = [Math.max(50, width), HEIGHT];
  if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
    canvas.width = Math.round(w * ratio);
    canvas.height = Math.round(h * ratio);
    canvas.style.width = `${w}px`;
    canvas.style.height = `${h}px`;
  }
  const ink = canvas.getContext("2d")!;
  ink.setTransform(ratio, 0, 0, ratio, 0, 0);
  ink.clearRect(0, 0, w, h);
  if (kind === "cloud") cloud_scene(ink, w, h, eye, data, payload!);
  else if (kind === "scan") scan_scene(ink, w, h, eye, data, payload!);
  else transforms_scene(ink, w, h, eye, data.frames);
}

async function paint_image(canvas: HTMLCanvasElement, width: number, data: any, payload: ArrayBuffer): Promise<void> {
  if (data.encoding === "rgba8") {
    canvas.width = data.width;
    canvas.height = data.height;
    const pixels = new Uint8ClampedArray(payload, 0, data.width * data.height * 4);
    canvas.getContext("2d")!.putImageData(new ImageData(pixels, data.width, data.height), 0, 0);
  } else {
    const bitmap = await createImageBitmap(new Blob([payload], { type: `image/${data.encoding}` }));
    canvas.width = bitmap.width;
    canvas.height = bitmap.height;
    canvas.getContext("2d")!.drawImage(bitmap, 0, 0);
    bitmap.close();
  }
  // A small picture is enlarged with sharp pixels, so that each can be seen.
  const scale = Math.min(width / canvas.width, IMAGE_HEIGHT / canvas.height);
  canvas.style.width = `${Math.max(1, Math.floor(canvas.width * scale))}px`;
  canvas.style.height = `${Math.max(1, Math.floor(canvas.height * scale))}px`;
  canvas.style.imageRendering = scale > 2 ? "pixelated" : "auto";
}
