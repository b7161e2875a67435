// ---- the page: everything tied together

const data = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);
const loading = data.live ? WasmRun.of(data.live) : null; // while the stage is built
const root = document.documentElement;
const TOGGLES = [
  ['joints', 'joints', 'j'], ['loops', 'loops', 'l'], ['forces', 'forces', 'f'], ['contacts', 'contacts', 'c'],
  ['shapes', 'contact shapes', 's'], ['trails', 'trails', 't'], ['frames', 'axes', 'a'],
  ['inertias', 'inertias', 'i'],
];

byId('title').textContent = data.title;
byId('headline').textContent = data.headline;
root.classList.toggle('dark', window.matchMedia('(prefers-color-scheme: dark)').matches);
keysPanel(byId('keys'));

let stale = true; // is the picture to be drawn again?
let stage = null;
let camera = null;
let plots = [];
let live = null; // the mechanism that runs in the page, if it has one
const times = floatsOf(data.times);
const panel = byId('panel');
const timeline = new Timeline(times[0], times[times.length - 1], () => (stale = true));

const jump = (time) => {
  timeline.play(false);
  timeline.seek(Math.fround(time)); // the sample after the event
};
const events = new EventList(data.events, jump, byId('marks'), timeline);
const modes = data.modes ? new ModeList(data.modes, timeline) : null;
const recorded = element('div', 'side');
panel.append(recorded);
if (data.recorded !== false) recorded.append(...(modes ? modes.cards : [auditCard(data)]));
if (data.events.length) recorded.append(events.card);
plots = data.groups.map((group) => new Plot(group, times, (t) => {
  timeline.play(false);
  timeline.seek(t);
}));
recorded.append(...plots.map((p) => p.card), settingsCard(data));

try {
  stage = data.live ? new LiveStage(byId('scene'), data) : new Stage(byId('scene'), data);
  camera = new Camera(byId('scene'), data.low, data.high, data.size, () => (stale = true), data.view);
} catch (error) {
  byId('trouble').textContent = data.recorded === false ? 'This browser has no WebGL 2, which a live page needs.' : error.message;
  byId('trouble').hidden = false;
  byId('timeline').hidden = data.recorded === false;
}

// ---- what is shown

const has = { loops: data.closures.length, forces: data.arrows.length, contacts: data.touches.names.length };
if (stage) has.shapes = Number(stage.contacts.has_shapes);
const switches = {};
for (const [key, name, letter] of stage ? TOGGLES : []) {
  if (has[key] === 0) continue;
  const button = element('button', '', name);
  button.title = `${name} (${letter})`;
  button.dataset.key = key;
  const flip = () => {
    stage.shown[key] = !stage.shown[key];
    button.setAttribute('aria-pressed', String(stage.shown[key]));
    stale = true;
  };
  button.setAttribute('aria-pressed', String(stage.shown[key]));
  button.addEventListener('click', flip);
  switches[letter] = flip;
  byId('toggles').append(button);
}

if (data.lost.length) {
  const many = data.lost.length > 1 ? `${data.lost.length} meshes are` : 'a mesh is';
  const button = element('button', 'lost', `⚠ ${many} not shown`);
  button.title = data.lost.slice(0, 5).join('\n');
  button.addEventListener('click', () => document.querySelector('.notes').scrollIntoView({ block: 'center' }));
  byId('toggles').append(button);
}

function status() {
  if (!stage || !(stage.closures.length || stage.data.holds.length || stage.contacts.names.length)) return;
  const now = stage.closedNow();
  const worst = Math.max(0, ...now.map((k) => stage.error(stage.closures[k])));
  const word = worst < 1e-6 ? 'closed' : worst < 1e-3 ? 'nearly closed' : 'open';
  const many = now.length > 1 ? `${now.length} loops` : now.length ? '1 loop' : 'no loop';
  const parts = [];
  if (stage.closures.length) parts.push(`${many} ${word}` + (now.length ? `, largest error ${worst.toExponential(1)} m or rad` : ''));
  const holds = stage.holdsNow().map((x) => x.name);
  if (holds.length) parts.push(`holding: ${holds.join(', ')}`);
  if (stage.contacts.names.length) parts.push(stage.contacts.words());
  byId('status').textContent = parts.join('; ');
  const color = stage.colorOfError(worst).map((x) => Math.round(255 * x));
  byId('status').style.setProperty('--dot', now.length ? `rgb(${color})` : 'transparent');
}

// ---- names under the pointer

let pointer = null;
function point() {
  const label = byId('label');
  if (!pointer || camera.dragging || (live && live.pulling)) {
    label.hidden = true;
    if (stage.pointed) stale = true;
    stage.pointed = 0;
    return;
  }
  const canvas = byId('scene');
  const ratio = canvas.width / (canvas.clientWidth || 1);
  const number = stage.numberAt(pointer.x * ratio, pointer.y * ratio, camera);
  if (number !== stage.pointed) stale = true;
  stage.pointed = number;
  label.hidden = !number;
  if (!number) return;
  label.textContent = stage.describe(number);
  const room = canvas.clientWidth - label.offsetWidth - 8;
  label.style.left = `${clamp(pointer.x + 14, 4, Math.max(room, 4))}px`;
  label.style.top = `${clamp(pointer.y + 14, 4, canvas.clientHeight - label.offsetHeight - 4)}px`;
}
if (stage) {
  let moved = false;
  const remember = (e) => {
    pointer = { x: e.offsetX, y: e.offsetY };
    moved = true;
  };
  byId('scene').addEventListener('pointermove', remember);
  byId('scene').addEventListener('pointerup', remember);
  byId('scene').addEventListener('pointerleave', () => {
    pointer = null;
    moved = true;
  });
  window.setInterval(() => {
    if (moved || (pointer && (timeline.playing || (live && live.on)))) point();
    moved = false;
  }, 60);
}

// ---- buttons and keys

function flipTheme() {
  root.classList.toggle('dark');
  plots.forEach((p) => p.draw());
  if (live) live.changed();
  stale = true;
}
function flipKeys() {
  byId('keys').hidden = !byId('keys').hidden;
  byId('help').setAttribute('aria-expanded', String(!byId('keys').hidden));
}
byId('theme').addEventListener('click', flipTheme);
byId('help').addEventListener('click', flipKeys);

const span = () => timeline.end - timeline.start;

// from the sample nearest to the time now, whatever was drawn last
function step(by) {
  timeline.play(false);
  const later = times.findIndex((t) => t > timeline.time);
  let k = later < 0 ? times.length - 1 : Math.max(later - 1, 0);
  if (k + 1 < times.length && times[k + 1] - timeline.time < timeline.time - times[k]) k += 1;
  timeline.seek(times[clamp(k + by, 0, times.length - 1)]);
}
const ACTIONS = {
  ' ': () => timeline.toggle(),
  ArrowLeft: (e) => (e.shiftKey ? timeline.seek(timeline.time - span() / 10) : step(-1)),
  ArrowRight: (e) => (e.shiftKey ? timeline.seek(timeline.time + span() / 10) : step(1)),
  Home: () => timeline.seek(timeline.start),
  End: () => timeline.seek(timeline.end),
  '-': () => timeline.faster(-1),
  '+': () => timeline.faster(1),
  '=': () => timeline.faster(1),
  d: flipTheme,
  e: () => (modes || events).step(1),
  E: () => (modes || events).step(-1),
  '?': flipKeys,
  r: () => camera && camera.reset(),
  v: () => camera && camera.reset(),
  Escape: () => byId('keys').hidden || flipKeys(),
};
window.addEventListener('keydown', (e) => {
  const own = ['SELECT', 'INPUT', 'BUTTON'].includes(e.target.tagName);
  if (e.ctrlKey || e.metaKey || e.altKey || (own && [' ', 'ArrowLeft', 'ArrowRight', 'Home', 'End'].includes(e.key))) return;
  const action = (live && live.on && live.keys[e.key]) || ACTIONS[e.key] || switches[e.key];
  if (!action) return;
  e.preventDefault();
  action(e);
});

// ---- drawing

function frame(now) {
  if (live && live.on) stale = live.tick(now) || stale;
  else timeline.tick(now);
  const grown = stage && stage.drawing.fitted();
  if (stale || grown) {
    stale = false;
    if (stage) {
      stage.move(timeline.time);
      camera.shift = stage.travelled();
      stage.draw(camera, root.classList.contains('dark'));
    }
    status();
    if (live && live.on) live.shown(now);
    else cursors();
  }
  window.requestAnimationFrame(frame);
}
function cursors() {
  events.show(timeline.time);
  const index = stage ? stage.nearest : Math.round((times.length - 1) * ((timeline.time - times[0]) / (times[times.length - 1] - times[0] || 1)));
  plots.forEach((p) => p.cursor(timeline.time, index));
}
const drawPlots = () => plots.forEach((p) => p.draw());
new ResizeObserver(() => {
  drawPlots();
  stale = true;
}).observe(panel);
drawPlots();
if (data.live && stage) live = shownLive(stage, camera);
const start = () => window.requestAnimationFrame(frame);
if (loading) loading.catch(() => null).then(start); // the first picture already moves
else start();
if (!(live && live.on) && !window.matchMedia('(prefers-reduced-motion: reduce)').matches) timeline.play(true);
window.spanloop = { timeline, camera, stage, plots, events, modes, live }; // for tests and for the curious
