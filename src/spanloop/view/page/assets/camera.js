// ---- a camera that orbits a point: mouse, touch, and keys

class Camera {
  constructor(canvas, low, high, size, changed) {
    this.home = scaled(0.5, add(low, high));
    this.size = Math.max(size, lengthOf(subtract(high, low)));
    this.changed = changed;
    this.canvas = canvas;
    this.pointers = new Map();
    this.reset();
    canvas.addEventListener('pointerdown', (e) => this.down(e));
    canvas.addEventListener('pointermove', (e) => this.dragged(e));
    for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, (e) => this.pointers.delete(e.pointerId));
    canvas.addEventListener('wheel', (e) => this.wheel(e), { passive: false });
    canvas.addEventListener('contextmenu', (e) => e.preventDefault());
    canvas.addEventListener('dblclick', () => this.reset());
  }

  reset() {
    this.target = [...this.home];
    this.azimuth = -0.95;
    this.elevation = 0.42;
    this.distance = 1.3 * this.size;
    this.changed();
  }

  get dragging() {
    return this.pointers.size > 0;
  }

  eye() {
    const [c, s] = [Math.cos(this.elevation), Math.sin(this.elevation)];
    const d = this.fit ? this.distance * this.fit : this.distance;
    return add(this.target, [d * c * Math.cos(this.azimuth), d * c * Math.sin(this.azimuth), d * s]);
  }

  // the matrix from the world to the screen; a narrow window sees from farther away
  seen(aspect) {
    this.fit = Math.max(1, 1 / aspect) ** 0.8;
    const far = this.distance * this.fit + 12 * this.size;
    const lens = perspective(0.7, aspect, far / 4000, far);
    return product(lens, lookingAt(this.eye(), this.target, [0, 0, 1]));
  }

  turn(x, y) {
    this.azimuth -= x;
    this.elevation = clamp(this.elevation + y, -1.5, 1.5);
    this.changed();
  }

  // by shares of the window's height
  pan(x, y) {
    const z = unit(subtract(this.eye(), this.target));
    const right = unit(cross([0, 0, 1], z));
    const up = cross(z, right);
    const reach = 0.73 * this.distance * (this.fit || 1);
    this.target = add(this.target, add(scaled(-x * reach, right), scaled(y * reach, up)));
    this.changed();
  }

  zoom(factor) {
    this.distance = clamp(this.distance * factor, 0.02 * this.size, 30 * this.size);
    this.changed();
  }

  down(e) {
    this.canvas.setPointerCapture(e.pointerId);
    this.pointers.set(e.pointerId, { x: e.clientX, y: e.clientY, pan: e.button > 0 || e.shiftKey });
  }

  dragged(e) {
    const before = this.pointers.get(e.pointerId);
    if (!before) return;
    const [dx, dy] = [e.clientX - before.x, e.clientY - before.y];
    const height = this.canvas.clientHeight || 1;
    const others = [...this.pointers.entries()].filter(([id]) => id !== e.pointerId);
    if (others.length) {
      const other = others[0][1];
      const apart = (p) => Math.hypot(p.x - other.x, p.y - other.y) || 1;
      this.zoom(apart(before) / apart({ x: e.clientX, y: e.clientY }));
      this.pan(dx / 2 / height, dy / 2 / height);
    } else if (before.pan) this.pan(dx / height, dy / height);
    else this.turn(0.008 * dx, 0.008 * dy);
    before.x = e.clientX;
    before.y = e.clientY;
  }

  wheel(e) {
    e.preventDefault();
    this.zoom(Math.exp(clamp(e.deltaY, -200, 200) * 0.0016));
  }
}
