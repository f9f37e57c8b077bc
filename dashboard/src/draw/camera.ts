// A 3D view on a 2D canvas: the camera orbits a point. x is red, y is green, z is blue and points up.

export interface Camera {
  /** Angle about z, in rad. */
  turn: number;
  /** Angle above the ground, in rad. */
  rise: number;
  /** Height of the canvas in metres, at the target point. */
  span: number;
  at: [number, number, number];
}

export function camera(span: number): Camera {
  return { turn: -2.2, rise: 0.55, span, at: [0, 0, 0] };
}

/**
 * Converts metres to pixels, without perspective, so that distances are comparable. The third value is the
 * depth; larger is nearer.
 */
export function projector(eye: Camera, width: number, height: number): (x: number, y: number, z: number) => [number, number, number] {
  const scale = Math.min(width, height) / eye.span;
  const [sin_t, cos_t, sin_r, cos_r] = [Math.sin(eye.turn), Math.cos(eye.turn), Math.sin(eye.rise), Math.cos(eye.rise)];
  const [x0, y0, z0] = eye.at;
  return (x, y, z) => {
    const [dx, dy, dz] = [x - x0, y - y0, z - z0];
    const right = -dx * sin_t + dy * cos_t;
    const ahead = -dx * cos_t - dy * sin_t;
    const up = dz * cos_r + ahead * sin_r;
    return [width / 2 + right * scale, height / 2 - up * scale, -ahead * cos_r + dz * sin_r];
  };
}

/** Rotates and zooms the camera by mouse, touch and keyboard. */
export function steer(canvas: HTMLCanvasElement, eye: Camera, changed: () => void): void {
  let from: { x: number; y: number } | null = null;
  canvas.addEventListener("pointerdown", (event) => {
    from = { x: event.clientX, y: event.clientY };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!from) return;
    turn(eye, (event.clientX - from.x) * -0.008, (event.clientY - from.y) * 0.008);
    from = { x: event.clientX, y: event.clientY };
    changed();
  });
  const end = () => (from = null);
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(eye, Math.exp(event.deltaY * 0.0012));
    changed();
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const step = KEYS[event.key];
    if (!step) return;
    event.preventDefault();
    turn(eye, step[0], step[1]);
    zoom(eye, step[2]);
    changed();
  });
}

const KEYS: Record<string, [number, number, number]> = {
  ArrowLeft: [-0.1, 0, 1],
  ArrowRight: [0.1, 0, 1],
  ArrowUp: [0, 0.1, 1],
  ArrowDown: [0, -0.1, 1],
  "+": [0, 0, 0.8],
  "-": [0, 0, 1.25],
};

function turn(eye: Camera, by: number, up: number): void {
  eye.turn += by;
  eye.rise = Math.min(Math.PI / 2, Math.max(-Math.PI / 2, eye.rise + up));
}

function zoom(eye: Camera, by: number): void {
  eye.span = Math.min(10_000, Math.max(0.01, eye.span * by));
}
