// Elements, dialogs and tables. HTML is never made from strings.
import {clock, eachRun, visible} from './format.js';

const OVERSCAN = 8;   // rows that are drawn above and below the window

// An element with attributes, listeners ("onclick") and children. Strings become text.
export function h(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false)
      continue;
    if (key.startsWith('on'))
      element.addEventListener(key.slice(2), value);
    else
      element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children.flat(3).filter((c) => c !== null && c !== undefined));
  return element;
}

// Text from the server. <bdi> keeps its direction away from the text around it.
export function text(value, keep = '') {
  const element = h('bdi');
  eachRun(value, keep, (run, escaped) => {
    element.append(escaped ? h('span', {class: 'escape'}, run) : run);
  });
  return element;
}

// A reason in a list: one line, with a sign for each line break.
export function lineText(value) {
  return text(value.replace(/\s*[\r\n]\s*/g, ' ⏎ '));
}

// A reason with its lines.
export function linesText(value) {
  return h('span', {class: 'lines'}, text(value.replace(/\r\n?/g, '\n'), '\n\t'));
}

// The worker that holds or held a message: its name and address, or else its Client-ID. null: not known.
export function workerNode({worker, address, client}) {
  const title = client && `Client-ID ${visible(client)}`;
  if (worker)
    return h('span', {title}, text(worker), address ? [' at ', text(address)] : '');
  if (address)
    return h('span', {title}, 'a client at ', text(address));
  return client ? text(client) : null;
}

export function byId(id) {
  return document.getElementById(id);
}

export function lead(sentences) {
  return h('p', {class: 'lead'}, sentences);
}

export function section(id, title, ...content) {
  return h('section', {'aria-labelledby': id}, h('h2', {id}, title), ...content);
}

export function facts(pairs) {
  return h('dl', {class: 'facts'}, pairs.filter(Boolean).map(([name, ...value]) =>
    [h('dt', {}, name), h('dd', {}, ...value)]));
}

// Sets a text only if it differs, so that screen readers do not repeat it.
export function say(element, message) {
  if (element.textContent !== message)
    element.textContent = message;
}

// Replaces the children only if they differ, so that focus and selection survive.
export function update(element, ...children) {
  const next = h(element.localName, {}, ...children);
  const same = next.childNodes.length === element.childNodes.length &&
    [...next.childNodes].every((node, i) => node.isEqualNode(element.childNodes[i]));
  if (!same)
    element.replaceChildren(...next.childNodes);
}

export function toast(message, failed = false) {
  const remove = () => box.remove();
  const box = h('p', {class: failed ? 'toast failed' : 'toast'}, h('span', {}, visible(message)),
    h('button', {type: 'button', 'aria-label': 'Dismiss', onclick: remove}, '×'));
  box.shownAt = Date.now();
  byId('toasts').append(box);
  setTimeout(remove, failed ? 20000 : 5000);
}

// When the view changes. The toast of an action that leads to the next view stays.
export function clearToasts() {
  for (const box of [...byId('toasts').children])
    if (Date.now() - box.shownAt > 1000)
      box.remove();
}

export function errorText(error) {
  return [error.title || 'Error', error.description].filter(Boolean).map(visible).join('. ');
}

// Asks before an action. `content` names what goes and how many. Resolves to true for yes.
export function confirm({title, content, ok, danger = true}) {
  const dialog = byId('confirm');
  byId('confirm-title').textContent = title;
  byId('confirm-text').replaceChildren(...content.map((c) =>
    typeof c === 'string' ? h('p', {}, c) : c));
  byId('confirm-ok').textContent = ok;
  byId('confirm-ok').className = danger ? 'danger' : 'primary';
  dialog.returnValue = '';
  dialog.showModal();
  byId('confirm-cancel').focus();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'ok'), {once: true});
  });
}

// Runs an action and shows how it ended. A second click meanwhile does nothing.
export async function act(button, work) {
  if (button.getAttribute('aria-busy') === 'true')
    return;
  button.setAttribute('aria-busy', 'true');
  try {
    const message = await work();
    if (message)
      toast(message);
  } catch (error) {
    toast(errorText(error), true);
  } finally {
    button.removeAttribute('aria-busy');
  }
}

export function actionButton(id, label, work, kind = '') {
  return h('button', {id, type: 'button', class: kind,
    onclick: (event) => act(event.currentTarget, work)}, label);
}

// Buttons that one must not hit by mistake, behind another one.
export function menu(id, label, ...buttons) {
  const box = h('details', {id, class: 'menu'}, h('summary', {class: 'button'}, label),
    h('div', {}, buttons));
  const close = () => {
    box.open = false;
  };
  box.addEventListener('focusout', ({relatedTarget}) => {
    if (relatedTarget && !box.contains(relatedTarget))
      close();
  });
  box.addEventListener('keydown', ({key}) => {
    if (key !== 'Escape')
      return;
    close();
    box.firstElementChild.focus();
  });
  box.lastElementChild.addEventListener('click', close);
  return box;
}

// Says since when `main` shows old data, and greys it out.
export function freshness(main) {
  const note = h('p', {class: 'notice since', role: 'alert', hidden: true});
  let at = null;
  const set = (old) => {
    note.hidden = !old;
    main.classList.toggle('old', old);
  };
  return {note, close: () => set(false),
    fresh() {
      at = Date.now();
      set(false);
    },
    // True if data that is old now is shown. A server that responds with a refusal is there.
    failed(error) {
      const old = at !== null && (error.status === 0 || error.status >= 502);
      if (old)
        say(note, `No response from the server. This is as of ${clock(at)}.`);
      set(old);
      return old;
    }};
}

// A table that keeps only the rows near the window in the document. It scrolls with the page.
//
// With the option `whole` it draws all rows, which then need not be of equal height. The option
// `overscan` sets how many rows are drawn above and below the window.
// columns: {name, title, hint, cls, sort, text(row), node(row), update(td, row)}
// node() is called once per row, text() and update() at each change.
export class Table {
  #rows = new Map();    // index -> row
  #drawn = new Map();   // key -> {tr, cells}
  #total = 0;
  #frame = 0;
  #rowHeight = 44;
  #asked = '';

  constructor(options) {
    this.options = options;
    this.body = h('tbody');
    this.above = h('tbody', {class: 'spacer', 'aria-hidden': 'true'}, h('tr', {}, h('td')));
    this.below = h('tbody', {class: 'spacer', 'aria-hidden': 'true'}, h('tr', {}, h('td')));
    this.head = h('tr', {'aria-rowindex': 1}, options.columns.map((c) => this.#heading(c)));
    this.table = h('table', {id: options.id}, h('caption', {class: 'hidden'}, options.label),
      h('thead', {}, this.head), this.above, this.body, this.below);
    this.empty = h('div', {class: 'empty', hidden: true}, options.empty);
    this.element = h('div', {class: 'table'}, this.table, this.empty);
    this.body.addEventListener('keydown', (event) => this.#key(event));
    this.body.addEventListener('click', (event) => this.#click(event));
    this.onscroll = () => this.#schedule();
    window.addEventListener('scroll', this.onscroll, {passive: true});
    window.addEventListener('resize', this.onscroll, {passive: true});
  }

  close() {
    window.removeEventListener('scroll', this.onscroll);
    window.removeEventListener('resize', this.onscroll);
  }

  #heading(column) {
    const label = column.sort
      ? h('button', {type: 'button', onclick: () => this.options.onSort(column.sort)}, column.title)
      : column.title;
    return h('th', {scope: 'col', class: column.cls, 'data-col': column.name, title: column.hint},
      label);
  }

  showSort(sort) {
    this.options.columns.forEach((column, i) => {
      if (!column.sort)
        return;
      const order = column.sort === 'name' ? 'ascending' : 'descending';
      this.head.children[i].setAttribute('aria-sort', column.sort === sort ? order : 'none');
    });
  }

  // Rows from `offset` on, of `total`. Rows that were drawn before and are elsewhere now move.
  setRows(rows, offset = 0, total = rows.length) {
    this.#total = total;
    for (const index of this.#rows.keys())
      if (index >= total)
        this.#rows.delete(index);
    rows.forEach((row, i) => this.#rows.set(offset + i, row));
    this.empty.hidden = total > 0;
    this.table.setAttribute('aria-rowcount', total + 1);
    this.draw();
  }

  forget() {
    this.#rows.clear();
  }

  get rows() {
    return [...this.#rows.values()];
  }

  // The top of the first row, in the window. The spacers may be hidden, and have no place then.
  get #top() {
    return this.table.getBoundingClientRect().top + this.head.offsetHeight;
  }

  // The rows that the page should ask for: those in the window and some around it.
  get window() {
    if (this.options.whole)
      return {first: 0, most: this.#total};
    const top = this.#top;
    const overscan = this.options.overscan ?? OVERSCAN;
    const first = Math.max(0, Math.floor(-top / this.#rowHeight) - overscan);
    const most = Math.ceil(window.innerHeight / this.#rowHeight) + 2 * overscan;
    return {first: Math.min(first, Math.max(0, this.#total - most)), most};
  }

  #schedule() {
    if (!this.#frame)
      this.#frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.#frame = 0;
    const {first, most} = this.window;
    const last = Math.min(this.#total, first + most);
    const focused = this.body.contains(document.activeElement) ? document.activeElement : null;
    const kept = new Map();
    for (let i = first; i < last; i++) {
      const row = this.#rows.get(i);
      let key = row ? this.options.key(row) : `\n${i}`;
      if (kept.has(key))
        key = `\n${i}`;
      const drawn = this.#drawn.get(key) || this.#make(row);
      kept.set(key, drawn);
      this.#fill(drawn, row, i);
      if (this.body.children[i - first] !== drawn.tr)
        this.body.insertBefore(drawn.tr, this.body.children[i - first] || null);
    }
    while (this.body.children.length > last - first)
      this.body.lastElementChild.remove();
    this.#drawn = kept;
    this.#space(this.above, first);
    this.#space(this.below, this.#total - last);
    this.#rowHeight = this.body.firstElementChild?.offsetHeight || this.#rowHeight;
    if (focused && focused !== document.activeElement && focused.isConnected)
      focused.focus({preventScroll: true});
    const asked = `${first} ${most}`;
    if (asked !== this.#asked && this.options.onWindow)
      this.options.onWindow(first, most);
    this.#asked = asked;
  }

  #space(spacer, rows) {
    spacer.hidden = rows <= 0;
    spacer.rows[0].style.height = `${rows * this.#rowHeight}px`;
  }

  #make(row) {
    const cells = this.options.columns.map((column) => {
      const node = row && column.node ? column.node(row) : null;
      const cell = h(column.header ? 'th' : 'td',
        {scope: column.header && 'row', class: column.cls});
      cell.dataset.col = column.name;
      cell.append(...(node ? [node].flat() : !row && column.header ? ['…'] : []));
      return cell;
    });
    return {tr: h('tr', row ? this.options.attributes(row) : {}, cells), cells, shown: []};
  }

  #fill(drawn, row, index) {
    drawn.tr.setAttribute('aria-rowindex', index + 2);
    if (!row)
      return;
    this.options.columns.forEach((column, i) => {
      if (column.update)
        column.update(drawn.cells[i], row);
      if (!column.text)
        return;
      const value = column.text(row);
      if (drawn.shown[i] !== value)
        drawn.cells[i].textContent = drawn.shown[i] = value;
    });
  }

  #click(event) {
    const tr = event.target.closest('tr');
    if (!event.target.closest('a, button, input, label') && String(getSelection()) === '')
      tr?.querySelector('a, button')?.click();
  }

  #key(event) {
    const tr = event.target.closest('tr');
    if (event.key === 'Enter' && event.target.matches('input'))
      tr.querySelector('a')?.click();
    const index = Number(tr.getAttribute('aria-rowindex')) - 2;
    const to = {ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: this.#total - 1}[event.key];
    if (to === undefined || to < 0 || to >= this.#total)
      return;
    event.preventDefault();
    const place = [...tr.querySelectorAll('a, input, button')].indexOf(event.target);
    this.#focus(to, place);
  }

  // From a field above the table. False if there is no row yet.
  focusFirst() {
    this.#focus(0, 0);
    return this.body.contains(document.activeElement);
  }

  #focus(index, place) {
    const find = () => this.body.querySelector(`tr[aria-rowindex="${index + 2}"]`);
    if (!find()) {
      const middle = window.scrollY - window.innerHeight / 2;
      window.scrollTo(0, this.#top + middle + index * this.#rowHeight);
      this.draw();
    }
    const targets = find()?.querySelectorAll('a, input, button') || [];
    (targets[place] || targets[0])?.focus();
  }
}
