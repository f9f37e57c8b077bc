// Scenes of point clouds, laser scans and transform trees.

import { colour, faint } from "../theme";
import type { CloudData, Frame, ScanData } from "../wire/types";
import { projector, type Camera } from "./camera";

type Ink = CanvasRenderingContext2D;
type Project = ReturnType<typeof projector>;

/** The axes, and a ground grid with squares of 1, 10, … metres. */
function ground(ink: Ink, eye: Camera, project: Project): void {
  const step = 10 ** Math.floor(Math.log10(Math.max(eye.span, 0.05) / 3));
  const reach = Math.ceil(eye.span / step / 1.2) * step;
  const [cx, cy] = [Math.round(eye.at[0] / step) * step, Math.round(eye.at[1] / step) * step];
  ink.strokeStyle = colour("line");
  ink.lineWidth = 1;
  ink.beginPath();
  for (let d = -reach; d <= reach + step / 2; d += step) {
    line(ink, project(cx + d, cy - reach, 0), project(cx + d, cy + reach, 0));
    line(ink, project(cx - reach, cy + d, 0), project(cx + reach, cy + d, 0));
  }
  ink.stroke();
  ink.fillStyle = colour("dim");
  ink.font = FONT;
  ink.textAlign = "left";
  ink.fillText(`grid ${step >= 1 ? `${step} m` : `${Math.round(step * 1000)} mm`}`, 10, 18);
}

const FONT = "11px Inter, system-ui, sans-serif";

function line(ink: Ink, a: number[], b: number[]): void {
  ink.moveTo(a[0]!, a[1]!);
  ink.lineTo(b[0]!, b[1]!);
}

function axes(ink: Ink, project: Project, at: number[], turned: (v: number[]) => number[], length: number): void {
  const ends = [[length, 0, 0], [0, length, 0], [0, 0, length]];
  const colours = ["#e5484d", "#30a46c", "#3b82f6"];
  ink.lineWidth = 2;
  ends.forEach((end, i) => {
    const [x, y, z] = turned(end);
    ink.strokeStyle = colours[i]!;
    ink.beginPath();
    line(ink, project(at[0]!, at[1]!, at[2]!), project(at[0]! + x!, at[1]! + y!, at[2]! + z!));
    ink.stroke();
  });
}

const UNTURNED = (v: number[]) => v;

/** Points the camera at the middle of the cloud, with most of it in view. */
export function fit_cloud(data: CloudData, payload: ArrayBuffer, eye: Camera): boolean {
  const points = new Float32Array(payload, 0, data.points * data.fields.length);
  const size = data.fields.length;
  const sides: number[][] = [[], [], []];
  for (let i = 0; i < points.length; i += size * Math.max(1, Math.floor(data.points / 500))) {
    if (Number.isFinite(points[i]! + points[i + 1]! + points[i + 2]!)) for (let k = 0; k < 3; k++) sides[k]!.push(points[i + k]!);
  }
  if (!sides[0]!.length) return false;
  const bounds = sides.map((side) => {
    side.sort((a, b) => a - b);
    return [side[Math.floor(side.length * 0.03)]!, side[Math.floor((side.length - 1) * 0.97)]!];
  });
  eye.at = bounds.map(([low, high]) => (low! + high!) / 2) as [number, number, number];
  eye.span = Math.max(0.1, ...bounds.map(([low, high]) => high! - low!)) * 1.5;
  return true;
}

export function cloud_scene(ink: Ink, w: number, h: number, eye: Camera, data: CloudData, payload: ArrayBuffer): void {
  const project = projector(eye, w, h);
  ground(ink, eye, project);
  axes(ink, project, [0, 0, 0], UNTURNED, eye.span / 12);
  const size = data.fields.length;
  const points = new Float32Array(payload, 0, data.points * size);
  // A point is coloured by its intensity if available, else by its height.
  const by = size > 3 ? 3 : 2;
  let [low, high] = [Infinity, -Infinity];
  for (let i = by; i < points.length; i += size) {
    const value = points[i]!;
    if (!Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  const scale = high > low ? (SHADES - 1) / (high - low) : 0;
  // Grouped by shade, because changing the colour costs more than drawing a point.
  const shades: number[][] = Array.from({ length: SHADES }, () => []);
  for (let i = 0; i < points.length; i += size) {
    const [x, y, z] = [points[i]!, points[i + 1]!, points[i + 2]!];
    if (!Number.isFinite(x + y + z)) continue;
    const shade = Math.max(0, Math.min(SHADES - 1, Math.round((points[i + by]! - low) * scale) || 0));
    const [px, py] = project(x, y, z);
    if (px >= 0 && py >= 0 && px < w && py < h) shades[shade]!.push(px, py);
  }
  const dot = data.points > 5000 ? 1.5 : 2.2;
  shades.forEach((shade, i) => {
    ink.fillStyle = ramp(i / (SHADES - 1));
    for (let k = 0; k < shade.length; k += 2) ink.fillRect(shade[k]! - dot / 2, shade[k + 1]! - dot / 2, dot, dot);
  });
}

const SHADES = 24;

/** Blue to green to orange; all are visible on light and dark backgrounds. */
function ramp(at: number): string {
  return `hsl(${Math.round(225 - 195 * at)} 75% 48%)`;
}

export function scan_scene(ink: Ink, w: number, h: number, eye: Camera, data: ScanData, payload: ArrayBuffer): void {
  const project = projector(eye, w, h);
  ground(ink, eye, project);
  axes(ink, project, [0, 0, 0], UNTURNED, eye.span / 14);
  const ranges = new Float32Array(payload, 0, data.ranges);
  const step = data.ranges > 1 ? (data.angle_max - data.angle_min) / (data.ranges - 1) : 0;
  const hits: number[][] = [];
  ranges.forEach((range, i) => {
    if (!Number.isFinite(range) || range <= 0) return;
    const angle = data.angle_min + i * step;
    hits.push(project(range * Math.cos(angle), range * Math.sin(angle), 0));
  });
  const origin = project(0, 0, 0);
  ink.fillStyle = faint("plot-1", 0.1);
  ink.beginPath();
  ink.moveTo(origin[0], origin[1]);
  for (const hit of hits) ink.lineTo(hit[0]!, hit[1]!);
  ink.closePath();
  ink.fill();
  ink.fillStyle = colour("plot-1");
  for (const hit of hits) ink.fillRect(hit[0]! - 1.5, hit[1]! - 1.5, 3, 3);
}

/** Points the camera at the middle of all frames. */
export function fit_frames(frames: Frame[], eye: Camera): boolean {
  if (!frames.length) return false;
  const places = [...world(frames).values()].map(({ at }) => at);
  const bounds = [0, 1, 2].map((k) => [Math.min(...places.map((at) => at[k]!)), Math.max(...places.map((at) => at[k]!))]);
  eye.at = bounds.map(([low, high]) => (low! + high!) / 2) as Vector;
  eye.span = Math.max(0.1, ...bounds.map(([low, high]) => high! - low!)) * 1.7;
  return true;
}

type Vector = [number, number, number];
type Turn = [number, number, number, number];

export interface Pose {
  at: Vector;
  turn: Turn;
}

/** The pose of each frame relative to the root of its tree. A cycle of parents ends at its first frame. */
export function world(frames: Frame[]): Map<string, Pose> {
  const by_name = new Map(frames.map((frame) => [frame.frame, frame]));
  const poses = new Map<string, Pose>();
  const pose = (name: string, above: Set<string>): Pose => {
    const known = poses.get(name);
    if (known) return known;
    const frame = by_name.get(name);
    let result: Pose = { at: [0, 0, 0], turn: [0, 0, 0, 1] };
    if (frame && !above.has(name)) {
      const parent = pose(frame.parent, above.add(name));
      const moved = rotate(parent.turn, frame.translation);
      result = { at: [parent.at[0] + moved[0], parent.at[1] + moved[1], parent.at[2] + moved[2]], turn: product(parent.turn, frame.rotation) };
    }
    poses.set(name, result);
    return result;
  };
  for (const frame of frames) {
    pose(frame.parent, new Set());
    pose(frame.frame, new Set());
  }
  return poses;
}

function product([ax, ay, az, aw]: Turn, [bx, by, bz, bw]: Turn): Turn {
  return [
    aw * bx + ax * bw + ay * bz - az * by,
    aw * by - ax * bz + ay * bw + az * bx,
    aw * bz + ax * by - ay * bx + az * bw,
    aw * bw - ax * bx - ay * by - az * bz,
  ];
}

function rotate([x, y, z, w]: Turn, [vx, vy, vz]: Vector): Vector {
  const [tx, ty, tz] = [2 * (y * vz - z * vy), 2 * (z * vx - x * vz), 2 * (x * vy - y * vx)];
  return [vx + w * tx + y * tz - z * ty, vy + w * ty + z * tx - x * tz, vz + w * tz + x * ty - y * tx];
}

export function transforms_scene(ink: Ink, w: number, h: number, eye: Camera, frames: Frame[]): void {
  const project = projector(eye, w, h);
  ground(ink, eye, project);
  const poses = world(frames);
  ink.lineWidth = 1;
  ink.strokeStyle = colour("edge");
  ink.setLineDash([4, 3]);
  ink.beginPath();
  for (const frame of frames) {
    const [from, to] = [poses.get(frame.parent)!, poses.get(frame.frame)!];
    line(ink, project(...from.at), project(...to.at));
  }
  ink.stroke();
  ink.setLineDash([]);
  const length = eye.span / 16;
  for (const [name, { at, turn }] of poses) {
    axes(ink, project, at, (v) => rotate(turn, v as Vector), length);
    const [x, y] = project(...at);
    ink.fillStyle = colour("text");
    ink.font = FONT;
    ink.textAlign = "left";
    ink.fillText(name, x + 6, y - 6);
  }
}
