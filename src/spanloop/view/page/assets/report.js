// ---- words beside the picture: the audit, settings, notes

const MARKS = { well: '✓', 'not well': '✗', 'not judged': '?' };

function element(name, className = '', text = '') {
  const out = document.createElement(name);
  if (className) out.className = className;
  if (text) out.textContent = text;
  return out;
}

function card(title) {
  const out = element('section', 'card');
  out.append(element('h2', '', title));
  return out;
}

function auditCard(data) {
  const out = card('Audit');
  out.id = 'audit';
  out.append(element('p', 'verdict', data.audit ? data.audit.verdict : data.outcome));
  for (const f of data.audit ? data.audit.findings : []) {
    const row = element('div', `finding ${f.verdict.replace(' ', '-')}`);
    const words = element('div');
    words.append(element('b', '', `${f.name}: ${f.verdict}`), f.sentence);
    row.append(element('span', 'mark', MARKS[f.verdict] || ''), words);
    out.append(row);
  }
  return out;
}

function settingsCard(data) {
  const out = card('Settings');
  const list = element('dl');
  const rows = [['run', data.headline], ['outcome', data.outcome], ...data.settings];
  for (const [name, value] of rows) list.append(element('dt', '', name), element('dd', '', value));
  out.append(list);
  if (data.notes.length) {
    const notes = element('ul', 'notes');
    for (const note of data.notes) notes.append(element('li', '', note));
    out.append(notes);
  }
  return out;
}

const VIEW_KEYS = [['drag', 'rotate the view'], ['shift or right drag', 'pan'], ['wheel, pinch', 'zoom'], ['double click, r', 'reset the view']];
const TIME_KEYS = [
  ['space', 'play, pause'], ['← →', 'one sample'], ['shift ← →', 'a tenth of the run'], ['home, end', 'start, end'], ['e, shift e', 'next event, the one before'], ['− +', 'slower, faster'],
];
const LAYER_KEYS = [['j l f t a i', 'joints, loops, forces, trails, axes, inertias'], ['c s', 'forces of contacts, shapes of contacts']];
const PAGE_KEYS = [['d', 'light, dark'], ['?', 'this list']];

// groups: [title, rows] of keys and what they do; a title may be empty
function keysPanel(panel, groups = [['', [...VIEW_KEYS, ...TIME_KEYS, ...LAYER_KEYS, ...PAGE_KEYS]]]) {
  panel.replaceChildren();
  for (const [title, rows] of groups) {
    if (title) panel.append(element('strong', '', title));
    for (const [key, meaning] of rows) {
      const row = element('div');
      row.append(element('b', '', key), element('span', '', meaning));
      panel.append(row);
    }
  }
}
