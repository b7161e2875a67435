// ---- solids: triangles with normals and colours, collected into one buffer

const AROUND = 28; // corners of a circle

class Solid {
  constructor() {
    this.numbers = []; // position, normal, colour: nine numbers a corner
  }

  corner(m, p, n, color) {
    const q = pointOf(m, p);
    this.numbers.push(
      q[0], q[1], q[2],
      m[0] * n[0] + m[4] * n[1] + m[8] * n[2],
      m[1] * n[0] + m[5] * n[1] + m[9] * n[2],
      m[2] * n[0] + m[6] * n[1] + m[10] * n[2],
      color[0], color[1], color[2],
    );
  }

  box(m, size, color) {
    const half = size.map((x) => x / 2);
    for (let axis = 0; axis < 3; axis++)
      for (const sign of [-1, 1]) {
        const [u, v] = [(axis + 1) % 3, (axis + 2) % 3];
        const n = [0, 0, 0];
        n[axis] = sign;
        const at = (a, b) => {
          const p = [0, 0, 0];
          p[axis] = sign * half[axis]; p[u] = a * half[u]; p[v] = sign * b * half[v];
          return p;
        };
        for (const [a, b] of [[-1, -1], [1, -1], [1, 1], [-1, -1], [1, 1], [-1, 1]]) this.corner(m, at(a, b), n, color);
      }
  }

  // a profile of rings (radius, z, normal outward, normal along z), turned about z
  turned(m, rings, color, stretch = [1, 1, 1]) {
    const place = (ring, k) => {
      const a = (2 * Math.PI * k) / AROUND;
      const [c, s] = [Math.cos(a), Math.sin(a)];
      const p = [ring[0] * c * stretch[0], ring[0] * s * stretch[1], ring[1] * stretch[2]];
      const n = unit([(ring[2] * c) / stretch[0], (ring[2] * s) / stretch[1], ring[3] / stretch[2]]);
      return [p, n];
    };
    for (let r = 0; r + 1 < rings.length; r++)
      for (let k = 0; k < AROUND; k++) {
        const [a, b, c, d] = [place(rings[r], k), place(rings[r], k + 1), place(rings[r + 1], k + 1), place(rings[r + 1], k)];
        for (const x of [a, b, c, a, c, d]) this.corner(m, x[0], x[1], color);
      }
  }

  cylinder(m, radius, length, color) {
    const h = length / 2;
    this.turned(m, [[0, -h, 0, -1], [radius, -h, 0, -1]], color);
    this.turned(m, [[radius, -h, 1, 0], [radius, h, 1, 0]], color);
    this.turned(m, [[radius, h, 0, 1], [0, h, 0, 1]], color);
  }

  capsule(m, radius, length, color) {
    const h = length / 2;
    const rings = [];
    for (let k = -8; k <= 8; k++) {
      const a = (Math.PI * k) / 16;
      if (k === 0) rings.push([radius, -h, 1, 0]);
      rings.push([radius * Math.cos(a), radius * Math.sin(a) + (k < 0 ? -h : h), Math.cos(a), Math.sin(a)]);
    }
    this.turned(m, rings, color);
  }

  ball(m, halves, color) {
    const rings = [];
    for (let k = -10; k <= 10; k++) {
      const a = (Math.PI * k) / 20;
      rings.push([Math.cos(a), Math.sin(a), Math.cos(a), Math.sin(a)]);
    }
    this.turned(m, rings, color, halves.map((x) => Math.max(x, 1e-6)));
  }

  // from z = 0 to z = 1, of radius 1 at the foot of its head
  arrow(m, color) {
    this.turned(m, [[0, 0, 0, -1], [0.42, 0, 0, -1]], color);
    this.turned(m, [[0.42, 0, 1, 0], [0.42, 0.74, 1, 0]], color);
    this.turned(m, [[0.42, 0.74, 0, -1], [1, 0.74, 0, -1]], color);
    this.turned(m, [[1, 0.74, 1, 0.3], [0, 1, 1, 0.3]], color);
  }

  axes(m, length) {
    const thin = 0.03 * length;
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]].forEach((d, k) => {
      const [x, y, z] = alongZ(d);
      const own = product(m, frameOf(x, y, z, scaled(length / 2, d)));
      this.cylinder(own, thin, length, [[0.85, 0.2, 0.2], [0.2, 0.65, 0.25], [0.2, 0.4, 0.9]][k]);
    });
  }

  mesh(m, shape, color) {
    const grid = wordsOf(shape.corners);
    const span = subtract(shape.high, shape.low);
    const at = (k) => [0, 1, 2].map((c) => shape.low[c] + (span[c] * grid[3 * k + c]) / 65535);
    for (let k = 0; k + 2 < grid.length / 3; k += 3) {
      const [a, b, c] = [at(k), at(k + 1), at(k + 2)];
      const n = unit(cross(subtract(b, a), subtract(c, a)));
      for (const p of [a, b, c]) this.corner(m, p, n, color);
    }
  }

  shape(shape, color) {
    const [m, s] = [shape.at, shape.size];
    if (shape.kind === 'box') this.box(m, s, color);
    else if (shape.kind === 'cylinder') this.cylinder(m, s[0], s[1], color);
    else if (shape.kind === 'capsule') this.capsule(m, s[0], s[1], color);
    else if (shape.kind === 'sphere') this.ball(m, [s[0], s[0], s[0]], color);
    else if (shape.kind === 'ellipsoid') this.ball(m, s, color);
    else if (shape.kind === 'mesh') this.mesh(m, shape, color);
    else if (shape.kind === 'hull') {
      const middle = scaled(0.5, add(shape.low, shape.high));
      this.box(product(m, frameOf([1, 0, 0], [0, 1, 0], [0, 0, 1], middle)), subtract(shape.high, shape.low), color);
    }
  }
}
