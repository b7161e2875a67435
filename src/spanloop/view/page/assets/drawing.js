// ---- WebGL: programs, buffers, and the few kinds of drawing that the page needs

// whether no graphics card draws, by the name of what does
function drawnByProcessor() {
  const gl = document.createElement('canvas').getContext('webgl2', { antialias: false });
  if (!gl) return false;
  const info = gl.getExtension('WEBGL_debug_renderer_info');
  const name = String(gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
  gl.getExtension('WEBGL_lose_context')?.loseContext();
  return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(name);
}

class Drawing {
  // hurried: where the processor draws, frames matter more than smooth edges
  constructor(canvas, hurried = false) {
    this.canvas = canvas;
    const antialias = !(hurried && drawnByProcessor());
    const gl = canvas.getContext('webgl2', { antialias, alpha: true, stencil: true });
    if (!gl) throw new Error('This browser has no WebGL 2; the plots beside still work.');
    this.gl = gl;
    this.programs = Object.fromEntries(Object.entries(SHADERS).map(([name, [v, f]]) => [name, this.program(v, f)]));
    this.bends = false; // whether there are programs for surfaces that bend
    this.used = null;
    gl.enable(gl.DEPTH_TEST);
    gl.blendFuncSeparate(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA, gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.pointing = null;
  }

  program(vertex, fragment) {
    const gl = this.gl;
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    const places = {};
    for (let k = 0; k < gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS); k++) {
      const { name, type } = gl.getActiveUniform(program, k);
      places[name.replace('[0]', '')] = { at: gl.getUniformLocation(program, name), type };
    }
    return { program, places };
  }

  // programs of the same shaders for surfaces that bend
  addBent() {
    if (this.bends) return;
    this.bends = true;
    for (const [name, [v, f]] of Object.entries(SHADERS))
      if (v.startsWith(RIGID)) this.programs[bent(name)] = this.program(v.replace(RIGID, BENT), f);
  }

  use(name, values) {
    const gl = this.gl;
    const { program, places } = this.programs[name];
    if (this.used !== name) gl.useProgram(program);
    this.used = name;
    for (const [key, value] of Object.entries(values)) {
      const place = places[key];
      if (!place) continue;
      if (place.type === gl.FLOAT_MAT4) gl.uniformMatrix4fv(place.at, false, value);
      else if (place.type === gl.FLOAT_VEC4) gl.uniform4fv(place.at, value);
      else if (place.type === gl.FLOAT_VEC3) gl.uniform3fv(place.at, value);
      else if (place.type === gl.FLOAT_VEC2) gl.uniform2fv(place.at, value);
      else if (place.type === gl.SAMPLER_2D) gl.bindTexture(gl.TEXTURE_2D, value);
      else if (place.type === gl.INT) gl.uniform1i(place.at, value);
      else if (value.length) gl.uniform1fv(place.at, value);
      else gl.uniform1f(place.at, value);
    }
  }

  // numbers with three vectors a corner, as one object to draw; faces: corners of its triangles, else one after the
  // other; vertices: of a surface that bends, the number of each corner in its mesh
  object(numbers, faces = null, vertices = []) {
    const gl = this.gl;
    const array = gl.createVertexArray();
    gl.bindVertexArray(array);
    const buffer = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(numbers), gl.STATIC_DRAW);
    for (let k = 0; k < 3; k++) {
      gl.enableVertexAttribArray(k);
      gl.vertexAttribPointer(k, 3, gl.FLOAT, false, 36, 12 * k);
    }
    if (vertices.length) {
      this.addBent();
      gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ARRAY_BUFFER, new Uint32Array(vertices), gl.STATIC_DRAW);
      gl.enableVertexAttribArray(3);
      gl.vertexAttribIPointer(3, 1, gl.UNSIGNED_INT, 0, 0);
    }
    if (faces) {
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, new Uint32Array(faces), gl.STATIC_DRAW);
    }
    return { array, buffer, count: faces ? faces.length : numbers.length / 9, has_faces: Boolean(faces) };
  }

  draw(object) {
    if (!object || !object.count) return;
    this.gl.bindVertexArray(object.array);
    if (object.has_faces) this.gl.drawElements(this.gl.TRIANGLES, object.count, this.gl.UNSIGNED_INT, 0);
    else this.gl.drawArrays(this.gl.TRIANGLES, 0, object.count);
  }

  // the canvas as large as it is shown; true if that changed
  fitted() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const [w, h] = [Math.round(this.canvas.clientWidth * ratio), Math.round(this.canvas.clientHeight * ratio)];
    if (!w || !h || (this.canvas.width === w && this.canvas.height === h)) return false;
    this.canvas.width = w;
    this.canvas.height = h;
    return true;
  }

  clear() {
    const gl = this.gl;
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
  }

  // each place darkened once, however many parts throw their shadow there
  shadow(paint) {
    const gl = this.gl;
    gl.enable(gl.STENCIL_TEST);
    gl.stencilFunc(gl.EQUAL, 0, 255);
    gl.stencilOp(gl.KEEP, gl.KEEP, gl.INCR);
    gl.enable(gl.BLEND);
    gl.depthMask(false);
    paint();
    gl.depthMask(true);
    gl.disable(gl.BLEND);
    gl.disable(gl.STENCIL_TEST);
  }

  blended(paint) {
    const gl = this.gl;
    gl.enable(gl.BLEND);
    gl.depthMask(false);
    paint();
    gl.depthMask(true);
    gl.disable(gl.BLEND);
  }

  // the colours, four bytes each, that paint() leaves at a pixel and up to `reach` pixels around it
  bytesAt(x, y, reach, paint) {
    const gl = this.gl;
    const [w, h] = [this.canvas.width, this.canvas.height];
    if (!this.pointing || this.pointing.w !== w || this.pointing.h !== h) {
      const frame = gl.createFramebuffer();
      gl.bindFramebuffer(gl.FRAMEBUFFER, frame);
      for (const [format, place] of [[gl.RGBA8, gl.COLOR_ATTACHMENT0], [gl.DEPTH_COMPONENT16, gl.DEPTH_ATTACHMENT]]) {
        const store = gl.createRenderbuffer();
        gl.bindRenderbuffer(gl.RENDERBUFFER, store);
        gl.renderbufferStorage(gl.RENDERBUFFER, format, w, h);
        gl.framebufferRenderbuffer(gl.FRAMEBUFFER, place, gl.RENDERBUFFER, store);
      }
      this.pointing = { frame, w, h };
    }
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.pointing.frame);
    gl.viewport(0, 0, w, h);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    paint();
    const side = 2 * reach + 1;
    const found = new Uint8Array(4 * side * side);
    gl.readPixels(Math.round(x) - reach, h - 1 - Math.round(y) - reach, side, side, gl.RGBA, gl.UNSIGNED_BYTE, found);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    return found;
  }
}
