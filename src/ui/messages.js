// A list of messages with a search that says how far it came.
import {ApiError, getJson, Live, view, withQuery} from './api.js';
import {errorText, h, lineText, say, Table, text} from './dom.js';
import {bytes, clock, count, holderName, NONE, plural} from './format.js';
import {messageHref} from './queues.js';

const PAGE = 50;

const fields = {text: 'Text in the body', id: 'Message id', client: 'Client-ID', claim: 'Claim id',
  reason: 'Last reason (exact)'};

// Where an id must be cut, its end stays visible, because ids often begin alike.
export function idParts(id) {
  return [h('span', {}, text(id.slice(0, -6))), text(id.slice(-6))];
}

export function idLink(project, queue, id) {
  return h('a', {class: 'id cut', href: messageHref(project, queue, id), title: id}, idParts(id));
}

function holder(cell, row) {
  const key = `${row.state} ${row.claim?.id} ${row.last_reason}`;
  if (cell.shown === key)
    return;
  cell.shown = key;
  const held = row.claim && ['held by ', text(holderName(row.claim) || 'a client')];
  const reason = row.last_reason !== undefined && row.last_reason !== null
    ? lineText(row.last_reason) : NONE;
  cell.replaceChildren(...(held || [reason]));
  cell.title = cell.textContent;
}

// Of a dead letter with those before it failed, which older versions did not keep.
function attemptsOf(row) {
  const all = (row.attempts || 0) + row.delivery_count;
  return row.dead_lettered_at && row.attempts === undefined && all === 0 ? null : all;
}

function columnsFor(project, queue, select) {
  const columns = [
    {name: 'message', title: 'Message', header: true, node: (row) => [
      idLink(project, queue, row.id),
      h('span', {class: 'project'}, text(row.body_start))]},
    {name: 'state', title: 'State', text: (row) => row.state},
    {name: 'posted', title: 'Posted', cls: 'medium',
      text: (row) => clock(Date.parse(row.created_at))},
    {name: 'deliveries', title: 'Attempts', cls: 'number', hint: 'How often a claim delivered it',
      text: (row) => count(attemptsOf(row))},
    {name: 'holder', title: 'Held by, or last reason', cls: 'medium', update: holder},
    {name: 'size', title: 'Size', cls: 'number wide', text: (row) => bytes(row.size)},
  ];
  if (select)
    columns.unshift({name: 'select', title: 'Select', cls: 'select', update: select});
  return columns;
}

export class MessageList {
  #found = [];
  #searched = 0;
  #query = {};
  #turn = 0;

  // `select` updates a cell with a checkbox.
  constructor({id, project, queue, select, empty, onRows = () => {}}) {
    Object.assign(this, {project, queue, onRows});
    this.table = new Table({id, label: 'Messages', columns: columnsFor(project, queue, select),
      key: (row) => row.id, attributes: (row) => ({'data-message': row.id}), empty});
    this.progress = h('p', {id: 'search-progress', class: 'note', role: 'status'});
    this.more = h('button', {id: 'search-continue', type: 'button', hidden: true,
      onclick: () => this.#search(this.marker)}, 'Continue');
    this.problem = h('p', {class: 'error', role: 'alert'});
    this.element = h('div', {}, this.problem, this.table.element,
      h('p', {class: 'buttons'}, this.more, this.progress));
    this.live = new Live(this.#path({}), {project, every: 3000,
      onData: (data) => this.#show(data), onError: (error) => this.#fail(error)});
    this.live.start();
  }

  // After an action. The view may be closed by then.
  refresh() {
    if (this.element.isConnected)
      this.load();
  }

  close() {
    this.#turn++;
    this.live.close();
    this.table.close();
  }

  get rows() {
    return this.#found;
  }

  // Lists the first messages again and again. With a search for more than a state, once.
  load(query = this.#query) {
    this.#query = query;
    this.#turn++;
    if (Object.keys(query).some((name) => name !== 'state')) {
      this.live.close();
      this.#search(null);
    } else {
      this.live.path = this.#path(query);
      this.live.close();
      this.live.start();
    }
  }

  #path(query, marker = null) {
    const path = withQuery(view(this.queue, '/messages'), {...query, marker, limit: PAGE});
    // An empty reason means: without one. withQuery() leaves empty values out.
    return query.reason === '' ? `${path}&reason=` : path;
  }

  async #search(marker) {
    const turn = ++this.#turn;
    this.live.close();
    this.more.disabled = true;
    this.progress.textContent = 'searching';
    try {
      const data = await getJson(this.#path(this.#query, marker), {project: this.project});
      if (turn === this.#turn)
        this.#show(data, marker !== null);
    } catch (error) {
      if (turn === this.#turn)
        this.#fail(error);
    } finally {
      this.more.disabled = false;
    }
  }

  #show(data, further = false) {
    say(this.problem, '');
    this.#found = further ? [...this.#found, ...data.messages] : data.messages;
    this.#searched = further ? this.#searched + data.searched : data.searched;
    this.marker = data.marker;
    this.table.setRows(this.#found);
    this.more.hidden = data.marker === null;
    const progress = `${plural(this.#found.length, 'message')} found, searched ` +
      `${count(this.#searched)} of ${count(data.total)}`;
    if (this.progress.textContent !== progress)
      this.progress.textContent = progress;
    this.onRows(this.#found, data);
  }

  #fail(error) {
    this.progress.textContent = '';
    say(this.problem, error instanceof ApiError ? errorText(error) : String(error));
  }
}

export function searchForm(list) {
  const field = h('select', {id: 'search-field'}, Object.entries(fields).map(([value, label]) =>
    h('option', {value}, label)));
  const input = h('input', {id: 'search-text', type: 'search', autocomplete: 'off',
    spellcheck: 'false', 'data-filter': true});
  const state = h('select', {id: 'search-state'}, h('option', {value: ''}, 'any'),
    ['ready', 'delayed', 'claimed'].map((value) => h('option', {value}, value)));
  const search = () => list.load({...(state.value && {state: state.value}),
    ...(input.value && {[field.value]: input.value})});
  const submit = (event) => {
    event.preventDefault();
    search();
  };
  const form = h('form', {id: 'search-form', class: 'filters', role: 'search', onsubmit: submit},
  h('p', {}, h('label', {for: 'search-field'}, 'Search in'), field),
  h('p', {}, h('label', {for: 'search-text'}, 'Search for'), input),
  h('p', {}, h('label', {for: 'search-state'}, 'State'), state),
  h('button', {}, 'Search'));
  state.addEventListener('change', search);
  return {form, set(name, value) {
    field.value = name;
    input.value = value;
    state.value = '';
    search();
    form.scrollIntoView({block: 'start'});
  }};
}
