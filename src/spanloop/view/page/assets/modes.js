// ---- modes: a list of them, and the shape of the one that is shown

class ModeList {
  constructor(found, timeline) {
    [this.found, this.timeline, this.now] = [found, timeline, 0];
    this.rows = found.map((mode, k) => this.row(mode, k));
    this.shape = card('Shape');
    this.shape.id = 'shape';
    this.bars = element('div', 'bars');
    this.shape.append(element('p', 'soft', 'parts of the joints, the largest as 1; lighter: backward'), this.bars);
    this.cards = [this.made(), this.shape];
    this.choose(0);
  }

  made() {
    const out = card('Modes');
    out.id = 'modes';
    const table = element('table', 'events');
    const head = element('tr');
    head.append(...['mode', '[Hz]', '[rad/s]', 'damping', ''].map((x) => element('th', '', x)));
    table.append(head, ...this.rows);
    const scroll = element('div', 'scroll');
    scroll.append(table);
    out.append(scroll);
    return out;
  }

  row(mode, k) {
    const row = element('tr');
    row.tabIndex = 0;
    row.append(...[String(k), mode.hertz, mode.rate, mode.damping, mode.kind].map((x) => element('td', '', x)));
    row.addEventListener('click', () => this.choose(k));
    row.addEventListener('keydown', (e) => e.key === 'Enter' && this.choose(k));
    return row;
  }

  // one mode swings until another is chosen
  choose(k) {
    this.rows[this.now].removeAttribute('aria-current');
    this.now = k;
    const mode = this.found[k];
    this.rows[k].setAttribute('aria-current', 'true');
    this.bars.replaceChildren(...mode.parts.map(([name, share, words]) => {
      const row = element('div', share < 0 ? 'bar back' : 'bar');
      row.style.setProperty('--share', `${Math.round(100 * Math.abs(share))}%`);
      row.append(element('span', '', name), element('i'), element('b', '', words));
      return row;
    }));
    this.timeline.limit(mode.start, mode.end, mode.words);
  }

  step(by) {
    this.choose((this.now + by + this.found.length) % this.found.length);
  }
}
