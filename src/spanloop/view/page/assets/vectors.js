// ---- small vectors and 4x4 matrices; a matrix is 16 numbers, column by column

const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
const subtract = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const scaled = (s, a) => [s * a[0], s * a[1], s * a[2]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const lengthOf = (a) => Math.hypot(a[0], a[1], a[2]);
const unit = (a) => scaled(1 / (lengthOf(a) || 1), a);
const clamp = (x, low, high) => Math.min(high, Math.max(low, x));

// the next of 1, 2, 5, 10, 20, ... and their fractions
function roundStep(x) {
  const power = 10 ** Math.floor(Math.log10(x));
  return [1, 2, 5, 10].map((k) => k * power).find((s) => s >= x * (1 - 1e-9));
}

const IDENTITY = new Float32Array([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]);

function product(a, b) {
  const out = new Float32Array(16);
  for (let c = 0; c < 4; c++)
    for (let r = 0; r < 4; r++)
      out[4 * c + r] =
        a[r] * b[4 * c] + a[4 + r] * b[4 * c + 1] + a[8 + r] * b[4 * c + 2] + a[12 + r] * b[4 * c + 3];
  return out;
}

const pointOf = (m, p) => [
  m[0] * p[0] + m[4] * p[1] + m[8] * p[2] + m[12],
  m[1] * p[0] + m[5] * p[1] + m[9] * p[2] + m[13],
  m[2] * p[0] + m[6] * p[1] + m[10] * p[2] + m[14],
];

// a matrix from three columns and a place
const frameOf = (x, y, z, p) => new Float32Array([...x, 0, ...y, 0, ...z, 0, ...p, 1]);

// axes of which the third points along d
function alongZ(d) {
  const z = unit(d);
  const x = unit(cross(Math.abs(z[0]) < 0.8 ? [1, 0, 0] : [0, 1, 0], z));
  return [x, cross(z, x), z];
}

function perspective(angle, aspect, near, far) {
  const f = 1 / Math.tan(angle / 2);
  const out = new Float32Array(16);
  out[0] = f / aspect;
  out[5] = f;
  out[10] = (far + near) / (near - far);
  out[11] = -1;
  out[14] = (2 * far * near) / (near - far);
  return out;
}

function lookingAt(eye, target, up) {
  const z = unit(subtract(eye, target));
  const x = unit(cross(up, z));
  const y = cross(z, x);
  return new Float32Array([
    x[0], y[0], z[0], 0, x[1], y[1], z[1], 0, x[2], y[2], z[2], 0, -dot(x, eye), -dot(y, eye), -dot(z, eye), 1,
  ]);
}

// the pose between two, each (w, x, y, z, px, py, pz) at an offset, as a matrix
function poseBetween(numbers, i, j, share, out) {
  let same = 0;
  for (let k = 0; k < 4; k++) same += numbers[i + k] * numbers[j + k];
  const sign = same < 0 ? -share : share;
  let [w, x, y, z] = [0, 1, 2, 3].map((k) => (1 - share) * numbers[i + k] + sign * numbers[j + k]);
  const size = 1 / Math.hypot(w, x, y, z);
  w *= size; x *= size; y *= size; z *= size;
  out[0] = 1 - 2 * (y * y + z * z); out[4] = 2 * (x * y - w * z); out[8] = 2 * (x * z + w * y);
  out[1] = 2 * (x * y + w * z); out[5] = 1 - 2 * (x * x + z * z); out[9] = 2 * (y * z - w * x);
  out[2] = 2 * (x * z - w * y); out[6] = 2 * (y * z + w * x); out[10] = 1 - 2 * (x * x + y * y);
  out[3] = out[7] = out[11] = 0;
  for (let k = 0; k < 3; k++) out[12 + k] = (1 - share) * numbers[i + 4 + k] + share * numbers[j + 4 + k];
  out[15] = 1;
  return out;
}

const colorOf = (text) => [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16) / 255);

function bytesOf(text) {
  const raw = atob(text);
  const out = new Uint8Array(raw.length);
  for (let k = 0; k < raw.length; k++) out[k] = raw.charCodeAt(k);
  return out;
}
const floatsOf = (text) => new Float32Array(bytesOf(text).buffer);
const wordsOf = (text) => new Uint16Array(bytesOf(text).buffer);
