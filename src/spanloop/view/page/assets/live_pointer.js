// ---- fingers and mouse on the live mechanism: on a body they grab, elsewhere they move the camera

const NEAR = { mouse: 3, pen: 6, touch: 14 }; // pixels around the pointer in which a body is found
const NOTE = 1600; // ms that a note stays

class LivePointer {
  constructor(live, stage, camera) {
    Object.assign(this, { live, stage, camera, canvas: stage.drawing.canvas, labels: new Map(), at: new Map() });
    const box = this.canvas.parentElement;
    const listen = (kind, act) => box.addEventListener(kind, act, { capture: true });
    listen('pointerdown', (e) => this.down(e));
    listen('pointermove', (e) => this.at.has(e.pointerId) && this.move(e));
    for (const end of ['pointerup', 'pointercancel', 'lostpointercapture']) listen(end, (e) => this.up(e.pointerId));
    listen('dblclick', (e) => this.onBody && e.stopPropagation());
  }

  inside(e) {
    const box = this.canvas.getBoundingClientRect();
    return [e.clientX - box.left, e.clientY - box.top];
  }

  down(e) {
    this.onBody = false;
    if (e.target !== this.canvas || !this.live.ready || e.button > 0 || e.shiftKey || this.camera.dragging) return;
    const [x, y] = this.inside(e);
    const ratio = this.canvas.width / (this.canvas.clientWidth || 1);
    const found = this.stage.pick(x * ratio, y * ratio, this.camera, Math.round((NEAR[e.pointerType] ?? 3) * ratio));
    if (!found) return;
    const [body, at] = this.taken(this.bodyOf(found.number), found.place);
    if (!at || at.why) return this.note(x, y, at ? at.why : 'this body cannot be grabbed');
    this.onBody = true;
    e.stopPropagation();
    this.canvas.setPointerCapture(e.pointerId);
    this.live.grabs.add(e.pointerId, body, at, found.place);
    const z = unit(subtract(this.camera.eye(), this.camera.center()));
    this.at.set(e.pointerId, { x, y, depth: dot(subtract(this.camera.eye(), found.place), z) });
    this.labels.set(e.pointerId, this.label());
    this.live.grabbed();
  }

  // the body that a pull at a place acts on, and where in the inputs; of a surface that bends the nearest interface
  taken(body, place) {
    const at = this.live.spec.grab[body];
    if (!at || !at.nodes) return [body, at];
    const poses = this.live.run.kernel('poses');
    const away = (node) => lengthOf(subtract(this.live.run.origin(poses, node.body), place));
    const nearest = at.nodes.reduce((a, b) => (away(b) < away(a) ? b : a));
    return [nearest.body, nearest];
  }

  // of a number of the picture; a closure stands for its body b, or a if b is the world
  bodyOf(number) {
    if (number <= this.stage.count) return number - 1;
    const c = this.stage.closures[number - this.stage.count - 1];
    return this.live.spec.grab[c.b].why ? c.a : c.b;
  }

  move(e) {
    e.stopPropagation();
    const [x, y] = this.inside(e);
    Object.assign(this.at.get(e.pointerId), { x, y });
  }

  up(id) {
    if (!this.at.delete(id)) return;
    this.live.grabs.release(id);
    this.labels.get(id).remove();
    this.labels.delete(id);
    this.live.changed();
  }

  // all pulls end; why: a note where they were
  releaseAll(why = '') {
    for (const [id, { x, y }] of [...this.at]) {
      this.up(id);
      if (why) this.note(x, y, why);
    }
  }

  label() {
    return this.canvas.parentElement.appendChild(element('div', 'pull'));
  }

  // the place nearest to the pointer, on its line from the grabbed point, that the picture shows
  seenAt(x, y, place) {
    const { clientWidth: w, clientHeight: h } = this.canvas;
    const m = this.camera.seen(w / h);
    const [u, v, , d] = [0, 1, 2, 3].map((r) => m[r] * place[0] + m[4 + r] * place[1] + m[8 + r] * place[2] + m[12 + r]);
    const from = [((u / d + 1) / 2) * w, ((1 - v / d) / 2) * h];
    const share = (a, b, most) => (b < 0 ? a / (a - b) : b > most ? (most - a) / (b - a) : 1);
    const s = clamp(Math.min(share(from[0], x, w), share(from[1], y, h)), 0, 1);
    return [from[0] + s * (x - from[0]), from[1] + s * (y - from[1])];
  }

  put(label, x, y) {
    const [w, h] = [this.canvas.clientWidth, this.canvas.clientHeight];
    label.style.left = `${clamp(x + 16, 4, w - label.offsetWidth - 4)}px`;
    label.style.top = `${clamp(y - 34, 4, h - label.offsetHeight - 4)}px`;
  }

  note(x, y, text) {
    const label = this.label();
    label.textContent = text;
    label.setAttribute('role', 'status');
    this.put(label, x, y);
    window.setTimeout(() => label.remove(), NOTE);
  }

  // where the pointers pull to: in the plane through the grabbed point that faces the camera
  aim() {
    const { clientWidth: w, clientHeight: h } = this.canvas;
    const z = unit(subtract(this.camera.eye(), this.camera.center()));
    for (const [id, { x, y, depth }] of this.at) {
      const ray = rayOf(this.camera, x / w, y / h, w / h);
      this.live.grabs.held.get(id).target = add(this.camera.eye(), scaled(-depth / dot(ray, z), ray));
    }
  }

  // the size of each pull beside its pointer
  show(playing) {
    for (const [id, { x, y }] of this.at) {
      const label = this.labels.get(id);
      const size = lengthOf(this.live.grabs.held.get(id).force);
      label.textContent = `${size < 0.01 ? '0' : shortNumber(Number(size.toPrecision(size < 100 ? 2 : 3)))} N${playing ? '' : ', paused'}`;
      this.put(label, ...this.seenAt(x, y, this.live.grabs.held.get(id).place));
    }
  }
}
