// ---- programs for the graphics card

const MOST_SHAPES = 16; // of a surface that bends

// a corner of a body and its normal, in the frame of the body
const RIGID = `#version 300 es
    layout(location = 0) in vec3 position; layout(location = 1) in vec3 normal;
    vec3 place() { return position; }
    vec3 facing() { return normal; }`;
// the same of a surface that bends (bending.js): moved, and turned, by the sum of its shapes
const BENT = `#version 300 es
    layout(location = 0) in vec3 position; layout(location = 1) in vec3 normal; layout(location = 3) in uint number;
    uniform highp sampler2D shapes; uniform int count; uniform float eta[${MOST_SHAPES}];
    vec3 total(int part) {
      int wide = textureSize(shapes, 0).x;
      vec3 sum = vec3(0.0);
      for (int k = 0; k < count; k++) {
        int at = 2 * (int(number) * count + k) + part;
        sum += eta[k] * texelFetch(shapes, ivec2(at % wide, at / wide), 0).xyz;
      }
      return sum;
    }
    vec3 place() { return position + total(0); }
    vec3 facing() { return normal + cross(total(1), normal); }`;
// the program of the same name for surfaces that bend
const bent = (name) => `${name} bent`;

const SHADERS = {
  // lit from above and from the viewer's side; a tint for what is pointed at
  solid: [
    `${RIGID}
    layout(location = 2) in vec3 color;
    uniform mat4 seen, model; out vec3 n, c, w;
    void main() {
      vec4 p = model * vec4(place(), 1.0);
      w = p.xyz; n = mat3(model) * facing(); c = color;
      gl_Position = seen * p;
    }`,
    `#version 300 es
    precision highp float;
    in vec3 n, c, w; uniform vec3 eye, sun; uniform vec4 tint; uniform float alpha, ambient; out vec4 shown;
    void main() {
      vec3 view = normalize(eye - w), face = normalize(n);
      if (dot(face, view) < 0.0) face = -face;
      float key = max(dot(face, sun), 0.0), fill = max(dot(face, view), 0.0), sky = 0.5 + 0.5 * face.z;
      float gloss = pow(max(dot(reflect(-sun, face), view), 0.0), 40.0);
      vec3 base = mix(c, tint.rgb, tint.a);
      vec3 lit = base * (ambient * mix(0.66, 1.0, sky) + 0.5 * key + 0.16 * fill) + 0.18 * gloss;
      shown = vec4(pow(lit, vec3(0.94)), alpha);
    }`,
  ],
  // one colour: shadows, and numbers of parts for the pointer
  plain: [
    `${RIGID}
    uniform mat4 seen, model;
    void main() { gl_Position = seen * (model * vec4(place(), 1.0)); }`,
    `#version 300 es
    precision highp float; uniform vec4 paint; out vec4 shown;
    void main() { shown = paint; }`,
  ],
  // a floor with lines that fade out; checkered, if it is touched
  floor: [
    `#version 300 es
    layout(location = 0) in vec3 position; uniform mat4 seen, model; out vec3 w;
    void main() { vec4 p = model * vec4(position, 1.0); w = p.xyz; gl_Position = seen * p; }`,
    `#version 300 es
    precision highp float;
    in vec3 w; uniform vec3 middle, ink; uniform float gap, wide, checks; out vec4 shown;
    float lines(float step) {
      vec2 x = w.xy / step, near = abs(fract(x - 0.5) - 0.5) / fwidth(x);
      return 1.0 - min(min(near.x, near.y), 1.0);
    }
    void main() {
      float fade = 1.0 - smoothstep(0.25, 1.0, length(w.xy - middle.xy) / wide);
      float line = max(0.35 * lines(gap), 0.8 * lines(5.0 * gap));
      vec2 cell = floor(w.xy / (5.0 * gap));
      float dark = checks * mod(cell.x + cell.y, 2.0);
      shown = vec4(ink, (0.10 + dark + 0.9 * line) * 0.32 * fade);
    }`,
  ],
  // a line of constant width on the screen; old parts fade
  trail: [
    `#version 300 es
    layout(location = 0) in vec3 start; layout(location = 1) in vec3 end; layout(location = 2) in vec3 place;
    uniform mat4 seen; uniform vec2 screen; uniform float width, now, window; out float age;
    void main() {
      vec4 a = seen * vec4(start, 1.0), b = seen * vec4(end, 1.0), p = mix(a, b, place.x);
      vec2 along = normalize((b.xy / b.w - a.xy / a.w) * screen + 1e-9);
      p.xy += vec2(-along.y, along.x) * place.y * width / screen * p.w;
      age = (now - place.z) / window;
      gl_Position = p;
    }`,
    `#version 300 es
    precision highp float; in float age; uniform vec3 paint; out vec4 shown;
    void main() {
      if (age < 0.0) discard;
      shown = vec4(paint, 0.12 + 0.78 * (1.0 - clamp(age, 0.0, 1.0)));
    }`,
  ],
};
