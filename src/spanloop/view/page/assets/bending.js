// ---- surfaces that bend: corners move by a sum of shapes, which the vertex shader adds up

const WIDE = 2048; // texels of a row of the texture

// how corners move with each shape, from whole steps: numbers [corner][shape][axis]
function movementOf(mesh) {
  const steps = new Int16Array(bytesOf(mesh.movement).buffer);
  const count = mesh.steps.length;
  return Float32Array.from(steps, (x, i) => x * mesh.steps[Math.floor(i / 3) % count]);
}

// how a surface turns at each corner with each shape, [corner][shape][axis]: the mean over the triangles around it,
// weighted by area. A triangle of normal m turns by m x dm, and about m by half the curl: circulation / (2 area)
function turningOf({ points, faces }, moved, count) {
  const out = new Float32Array(moved.length);
  const areas = new Float32Array(points.length / 3);
  const at = (numbers, k) => [numbers[k], numbers[k + 1], numbers[k + 2]];
  for (let f = 0; f < faces.length; f += 3) {
    const own = [faces[f], faces[f + 1], faces[f + 2]];
    const [a, b, c] = own.map((k) => at(points, 3 * k));
    const sides = [subtract(b, a), subtract(c, b), subtract(a, c)];
    const normal = cross(sides[0], subtract(c, a));
    const area = lengthOf(normal);
    const m = unit(normal);
    for (const k of own) areas[k] += area;
    for (let s = 0; s < count; s++) {
      const [u, v, w] = own.map((k) => at(moved, 3 * (k * count + s)));
      const change = add(cross(subtract(v, u), subtract(c, a)), cross(sides[0], subtract(w, u)));
      const flow = 0.5 * (dot(add(u, v), sides[0]) + dot(add(v, w), sides[1]) + dot(add(w, u), sides[2]));
      const turn = add(cross(m, change), scaled(flow, m));
      for (const k of own) for (let i = 0; i < 3; i++) out[3 * (k * count + s) + i] += turn[i];
    }
  }
  return out.map((x, i) => x / (areas[Math.floor(i / (3 * count))] || 1));
}

// a texture of movement and turning: two texels for each corner and shape
function shapesTexture({ gl }, mesh) {
  const count = mesh.steps.length;
  const moved = movementOf(mesh);
  const turned = turningOf(unpacked(mesh), moved, count);
  const texels = (2 * moved.length) / 3;
  const high = Math.ceil(texels / WIDE);
  const numbers = new Float32Array(4 * WIDE * high);
  for (let i = 0; i < moved.length / 3; i++)
    for (let k = 0; k < 3; k++) [numbers[8 * i + k], numbers[8 * i + 4 + k]] = [moved[3 * i + k], turned[3 * i + k]];
  const texture = gl.createTexture();
  gl.bindTexture(gl.TEXTURE_2D, texture);
  gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA32F, WIDE, high, 0, gl.RGBA, gl.FLOAT, numbers);
  for (const side of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, side, gl.NEAREST);
  for (const side of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, side, gl.CLAMP_TO_EDGE);
  return texture;
}

// the surface of one body: its shapes, and how much of each there is now
class Bending {
  constructor(drawing, mesh, { modes, eta }) {
    this.modes = modes;
    this.recorded = floatsOf(eta);
    this.mix = mesh.mix ? floatsOf(mesh.mix) : null; // [shape][mode]; null: shapes are modes
    mesh.texture = mesh.texture || shapesTexture(drawing, mesh);
    this.now = { shapes: mesh.texture, count: mesh.steps.length, eta: new Float32Array(MOST_SHAPES) };
  }

  // between two samples of the run
  move(i, next, share) {
    const at = (k, m) => this.recorded[k * this.modes + m];
    this.set((m) => (1 - share) * at(i, m) + share * at(next, m));
  }

  // amount(m): the coordinate of mode m
  set(amount) {
    for (let k = 0; k < this.now.count; k++) {
      let sum = this.mix ? 0 : amount(k);
      for (let m = 0; this.mix && m < this.modes; m++) sum += this.mix[k * this.modes + m] * amount(m);
      this.now.eta[k] = sum;
    }
  }
}
