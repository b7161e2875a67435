// ---- solids: triangles with normals and colours, collected into one buffer

const AROUND = 36; // corners of a circle
const THIN = 20; // of limbs, balls and marks, which are small on the screen
const CREASE = Math.cos(0.6); // of the angle from which an edge is sharp
const CROWD = 256; // triangles around one corner from which their normals are not averaged

class Solid {
  constructor() {
    this.numbers = []; // position, normal, colour: nine numbers a corner
    this.faces = []; // numbers of three corners each
    this.vertices = []; // of a surface that bends: for each corner the one of its mesh
  }

  // a corner that belongs to one triangle
  corner(m, p, n, color) {
    this.faces.push(this.numbers.length / 9);
    this.shared(m, p, n, color);
  }

  shared(m, p, n, color) {
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
  turned(m, rings, color, stretch = [1, 1, 1], around = AROUND) {
    const first = this.numbers.length / 9;
    for (const ring of rings)
      for (let k = 0; k < around; k++) {
        const a = (2 * Math.PI * k) / around;
        const [c, s] = [Math.cos(a), Math.sin(a)];
        const p = [ring[0] * c * stretch[0], ring[0] * s * stretch[1], ring[1] * stretch[2]];
        const n = unit([(ring[2] * c) / stretch[0], (ring[2] * s) / stretch[1], ring[3] / stretch[2]]);
        this.shared(m, p, n, color);
      }
    const at = (r, k) => first + r * around + (k % around);
    for (let r = 0; r + 1 < rings.length; r++)
      for (let k = 0; k < around; k++) {
        const [a, b, c, d] = [at(r, k), at(r, k + 1), at(r + 1, k + 1), at(r + 1, k)];
        this.faces.push(a, b, c, a, c, d);
      }
  }

  cylinder(m, radius, length, color, around = AROUND) {
    const h = length / 2;
    const turn = (...rings) => this.turned(m, rings, color, [1, 1, 1], around);
    turn([0, -h, 0, -1], [radius, -h, 0, -1]);
    turn([radius, -h, 1, 0], [radius, h, 1, 0]);
    turn([radius, h, 0, 1], [0, h, 0, 1]);
  }

  capsule(m, radius, length, color) {
    const h = length / 2;
    const rings = [];
    for (let k = -5; k <= 5; k++) {
      const a = (Math.PI * k) / 10;
      if (k === 0) rings.push([radius, -h, 1, 0]);
      rings.push([radius * Math.cos(a), radius * Math.sin(a) + (k < 0 ? -h : h), Math.cos(a), Math.sin(a)]);
    }
    this.turned(m, rings, color, [1, 1, 1], THIN);
  }

  ball(m, halves, color) {
    const rings = [];
    for (let k = -7; k <= 7; k++) {
      const a = (Math.PI * k) / 14;
      rings.push([Math.cos(a), Math.sin(a), Math.cos(a), Math.sin(a)]);
    }
    this.turned(m, rings, color, halves.map((x) => Math.max(x, 1e-6)), 28);
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

  // shaded smoothly, but for edges sharper than CREASE
  mesh(m, mesh, color) {
    const { points, faces, normals } = unpacked(mesh);
    let [left, part] = [0, -1];
    let own = color;
    for (let f = 0; f < faces.length; f += 3) {
      while (left === 0) {
        part += 1;
        left = mesh.colors[part][0];
        own = mesh.colors[part][1] ? colorOf(mesh.colors[part][1]) : color;
      }
      left -= 1;
      for (let k = f; k < f + 3; k++) {
        if (mesh.steps) this.vertices.push(faces[k]);
        this.corner(m, points.subarray(3 * faces[k], 3 * faces[k] + 3), normals.subarray(3 * k, 3 * k + 3), own);
      }
    }
  }

  shape(shape, bodyColor, meshes = []) {
    const [m, s] = [shape.at, shape.size];
    const color = shape.color ? colorOf(shape.color) : bodyColor;
    if (shape.kind === 'box') this.box(m, s, color);
    else if (shape.kind === 'cylinder') this.cylinder(m, s[0], s[1], color);
    else if (shape.kind === 'capsule') this.capsule(m, s[0], s[1], color);
    else if (shape.kind === 'sphere') this.ball(m, [s[0], s[0], s[0]], color);
    else if (shape.kind === 'ellipsoid') this.ball(m, s, color);
    else if (shape.kind === 'mesh') this.mesh(m, meshes[shape.mesh], color);
  }
}

// points, triangles and a normal for each corner of each triangle; kept, since bodies share meshes
function unpacked(mesh) {
  if (mesh.points) return mesh;
  const grid = wordsOf(mesh.corners);
  const span = subtract(mesh.high, mesh.low);
  mesh.points = Float32Array.from(grid, (x, k) => mesh.low[k % 3] + (span[k % 3] * x) / 65535);
  mesh.faces = mesh.wide ? new Uint32Array(bytesOf(mesh.faces).buffer) : wordsOf(mesh.faces);
  mesh.normals = smoothNormals(mesh.points, mesh.faces);
  return mesh;
}

// at each corner of a triangle the mean normal of those triangles around it that are nearly in its plane
function smoothNormals(points, faces) {
  const at = (k) => points.subarray(3 * k, 3 * k + 3);
  const count = faces.length / 3;
  const flat = new Float32Array(3 * count); // as long as the triangle is large
  const units = new Float32Array(3 * count);
  for (let f = 0; f < count; f++) {
    const [a, b, c] = [0, 1, 2].map((k) => at(faces[3 * f + k]));
    const n = cross(subtract(b, a), subtract(c, a));
    flat.set(n, 3 * f);
    units.set(unit(n), 3 * f);
  }
  const starts = new Uint32Array(points.length / 3 + 1);
  for (const k of faces) starts[k + 1] += 1;
  for (let k = 1; k < starts.length; k++) starts[k] += starts[k - 1];
  const next = starts.slice();
  const around = new Uint32Array(faces.length);
  faces.forEach((k, i) => (around[next[k]++] = Math.floor(i / 3)));
  const out = new Float32Array(3 * faces.length);
  for (let i = 0; i < faces.length; i++) {
    const f = 3 * Math.floor(i / 3);
    const [ux, uy, uz] = [units[f], units[f + 1], units[f + 2]];
    let [x, y, z] = [0, 0, 0];
    if (starts[faces[i] + 1] - starts[faces[i]] > CROWD) {
      out.set([ux, uy, uz], 3 * i);
      continue;
    }
    for (let j = starts[faces[i]]; j < starts[faces[i] + 1]; j++) {
      const g = 3 * around[j];
      if (ux * units[g] + uy * units[g + 1] + uz * units[g + 2] < CREASE) continue;
      x += flat[g]; y += flat[g + 1]; z += flat[g + 2];
    }
    out.set(unit([x, y, z]), 3 * i);
  }
  return out;
}
