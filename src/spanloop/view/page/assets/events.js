// ---- events: marks on the time line, and a list that leads to their moments

const MARKS_SHOWN = 400;
const ROWS_SHOWN = 500;
const NOTHING = '\u2013'; // an event without impulse, which takes no energy

class EventList {
  constructor(events, jump, marks, timeline) {
    [this.events, this.jump, this.timeline, this.last] = [events, jump, timeline, null];
    this.moments = [...new Set(events.map((e) => Math.fround(e.time)))];
    this.rows = events.slice(0, ROWS_SHOWN).map((e) => this.row(e));
    if (events.length) this.card = this.made();
    this.draw(marks);
  }

  // a mark for each moment, with the names of what happened there
  draw(marks) {
    const span = this.timeline.end - this.timeline.start || 1;
    const every = Math.ceil(this.moments.length / MARKS_SHOWN);
    marks.classList.toggle('many', this.moments.length > 60);
    this.moments.filter((_, k) => k % every === 0).forEach((time) => {
      const here = this.events.filter((e) => Math.fround(e.time) === time);
      const mark = element('button');
      mark.type = 'button';
      mark.tabIndex = -1; // the list is for keys
      mark.title = `${shortNumber(time)} s: ${here.map((e) => `${e.kind} ${e.name}`).join(', ')}`;
      mark.setAttribute('aria-label', mark.title);
      mark.style.left = `${(100 * (time - this.timeline.start)) / span}%`;
      mark.style.setProperty('--mark', here[0].color);
      mark.addEventListener('click', () => this.jump(time));
      marks.append(mark);
    });
  }

  made() {
    const out = card('Events');
    out.id = 'events';
    const table = element('table', 'events');
    const head = element('tr');
    head.append(...['time [s]', 'event', 'impulse', 'lost [J]'].map((x) => element('th', '', x)));
    table.append(head, ...this.rows);
    const scroll = element('div', 'scroll');
    scroll.append(table);
    out.append(scroll);
    if (this.events.length > ROWS_SHOWN) out.append(element('p', '', `and ${this.events.length - ROWS_SHOWN} more`));
    return out;
  }

  row(e) {
    const row = element('tr');
    row.tabIndex = 0;
    const what = element('td');
    what.append(element('i'), `${e.kind} ${e.name}`);
    what.firstChild.style.setProperty('--mark', e.color);
    const lost = e.lost || e.impulse ? shortNumber(e.lost) : NOTHING;
    const cells = [e.impulse || NOTHING, lost].map((x) => element('td', '', x));
    row.classList.toggle('calm', lost === NOTHING);
    row.append(element('td', '', e.time.toFixed(4)), what, ...cells);
    row.addEventListener('click', () => this.jump(e.time));
    row.addEventListener('keydown', (k) => k.key === 'Enter' && this.jump(e.time));
    return row;
  }

  // the last event before a time stands out
  show(time) {
    const passed = this.events.filter((e) => Math.fround(e.time) <= time).length;
    if (passed === this.last) return;
    this.rows[this.last - 1]?.removeAttribute('aria-current');
    this.last = passed;
    const row = this.rows[passed - 1];
    if (!row) return;
    row.setAttribute('aria-current', 'true');
    const box = row.closest('.scroll');
    if (box) box.scrollTop = clamp(box.scrollTop, row.offsetTop + row.offsetHeight - box.clientHeight, row.offsetTop - 24);
  }

  // to the next moment, or the one before
  step(by) {
    const now = this.timeline.time;
    const [earlier, later] = [this.moments.filter((t) => t < now), this.moments.filter((t) => t > now)];
    const found = by > 0 ? later[0] : earlier[earlier.length - 1];
    if (found !== undefined) this.jump(found);
  }
}
