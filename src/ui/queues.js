// All queues, the one that waits longest first.
import {caller, Live, withQuery} from './api.js';
import {sparkline} from './charts.js';
import {errorText, h, Table, text, update} from './dom.js';
import {age, count, duration, NONE, perMinute, plural} from './format.js';

// The thresholds of the alerts ClaimdOldestMessageTooOld and ClaimdOldestClaimTooOld.
export const READY_TOO_OLD = 1800;
export const CLAIM_TOO_OLD = 3600;

export const queueHref = (project, name) =>
  `#/queue/${encodeURIComponent(project)}/${encodeURIComponent(name)}`;
export const deadHref = (project, name) =>
  `#/dead/${encodeURIComponent(project)}/${encodeURIComponent(name)}`;
export const messageHref = (project, queue, id) =>
  `#/message/${encodeURIComponent(project)}/${encodeURIComponent(queue)}/${encodeURIComponent(id)}`;

export function pausedText(paused) {
  const what = ['claims', 'posts'].filter((k) => paused?.[k]);
  return what.join(', ');
}

function warn(cell, value, on) {
  if (cell.textContent !== value)
    cell.textContent = value;
  cell.classList.toggle('warn', on);
}

function deadCell(cell, row) {
  const key = `${row.dead_letters} ${row.dead_letter_queue}`;
  if (cell.shown === key)
    return;
  cell.shown = key;
  if (row.dead_letters > 0)
    cell.replaceChildren(h('a', {href: deadHref(row.project, row.name), class: 'mark'},
      count(row.dead_letters)));
  else if (row.dead_letter_queue)
    cell.replaceChildren(h('a', {href: deadHref(row.project, row.dead_letter_queue),
      'aria-label': `Dead-letter queue of ${row.name}`}, '→'));
  else
    cell.replaceChildren(NONE);
}

function pausedCell(cell, row) {
  const what = pausedText(row.paused);
  if (cell.shown !== what)
    cell.replaceChildren(...(what ? [h('span', {class: 'badge'}, what)] : []));
  cell.shown = what;
}

const columns = [
  {name: 'name', title: 'Queue', sort: 'name', header: true, node: (row) => [
    h('a', {href: queueHref(row.project, row.name)}, text(row.name)),
    h('span', {class: 'project'}, text(row.project))]},
  {name: 'ready', title: 'Ready', sort: 'ready', cls: 'number', text: (row) => count(row.ready),
    hint: 'Messages that a worker can claim now'},
  {name: 'oldest_ready', title: 'Oldest waits', sort: 'oldest_ready', cls: 'number',
    hint: 'Time since the oldest ready message was posted',
    update: (cell, row) => warn(cell, age(row.oldest_ready_age),
      row.oldest_ready_age > READY_TOO_OLD)},
  {name: 'claimed', title: 'Claimed', sort: 'claimed', cls: 'number',
    hint: 'Messages that workers hold', text: (row) => count(row.claimed)},
  {name: 'oldest_claim', title: 'Oldest claim', cls: 'number medium',
    hint: 'Time since the oldest claim was made',
    update: (cell, row) => warn(cell, age(row.oldest_claim_age),
      row.oldest_claim_age > CLAIM_TOO_OLD)},
  {name: 'delayed', title: 'Delayed', cls: 'number wide', text: (row) => count(row.delayed),
    hint: 'Messages before the end of their delay'},
  {name: 'posted', title: 'In / min', cls: 'number wide', hint: 'Posts per minute',
    text: (row) => perMinute(row.rates?.posted)},
  {name: 'delivered', title: 'Out / min', cls: 'number wide', hint: 'Deliveries per minute',
    text: (row) => perMinute(row.rates?.delivered)},
  {name: 'dead_letters', title: 'Dead letters', cls: 'number', update: deadCell,
    hint: 'Messages that failed. An arrow leads to the dead-letter queue of a queue'},
  {name: 'history', title: 'Last hour', cls: 'wide', hint: 'Ready messages', update: sparkline},
  {name: 'paused', title: 'Paused', cls: 'medium', update: pausedCell},
];

const sorts = {oldest_ready: 'Waiting longest', ready: 'Most ready', claimed: 'Most claimed',
  name: 'Name'};

function tile(label, hint) {
  const value = h('dd', {}, NONE);
  return {value, element: h('div', {class: 'tile'}, h('dt', {title: hint}, label), value)};
}

// What needs attention, from the rows that have waited longest.
function attention(rows) {
  const items = [];
  const work = rows.find((row) => row.ready > 0 && row.dead_letters < row.ready);
  const link = (row, href = queueHref(row.project, row.name)) => h('a', {href}, text(row.name));
  if (work) {
    const held = work.claimed ? `Workers hold ${plural(work.claimed, 'other message')}.`
      : work.waiters ? `${plural(work.waiters, 'request')} of workers wait.`
      : 'No worker holds a message of it or waits for one.';
    const stuck = work.oldest_ready_age > READY_TOO_OLD;
    items.push(h('li', {class: stuck ? 'bad' : 'good'}, stuck ? 'Stuck: ' : 'Waits longest: ',
      link(work), `. Its oldest ready message was posted ${duration(work.oldest_ready_age)} ago. `,
      held));
  }
  const paused = rows.filter((row) => pausedText(row.paused));
  if (paused.length)
    items.push(h('li', {class: 'bad'}, 'Paused: ', listOf(paused.map((row) => link(row)))));
  const dead = rows.filter((row) => row.dead_letters > 0);
  if (dead.length)
    items.push(h('li', {class: 'bad'}, 'Dead letters: ', listOf(dead.map((row) =>
      [link(row, deadHref(row.project, row.name)), ` (${count(row.dead_letters)})`]))));
  return items.length ? items : [h('li', {class: 'good'}, 'No message waits.')];
}

function listOf(items) {
  const shown = items.slice(0, 3).flatMap((item, i) => [i ? ', ' : '', item].flat());
  return items.length > 3 ? [...shown, ' and more'] : shown;
}

export function queuesView({main, query, setQuery}) {
  const own = caller.all_projects ? '' : caller.project || '';
  const state = {project: query.get('project') || own, q: query.get('q') || '',
    sort: sorts[query.get('sort')] ? query.get('sort') : 'oldest_ready'};
  const filterText = h('input', {id: 'filter-text', type: 'search', value: state.q, 'data-filter': true,
    autocomplete: 'off', spellcheck: 'false', placeholder: 'part of a name'});
  const filterProject = h('input', {id: 'filter-project', type: 'search', value: state.project,
    list: 'projects', autocomplete: 'off', spellcheck: 'false', placeholder: 'all projects',
    disabled: own !== ''});
  const projects = h('datalist', {id: 'projects'});
  const sort = h('select', {id: 'sort'}, Object.entries(sorts).map(([value, label]) =>
    h('option', {value, selected: value === state.sort}, label)));
  const tiles = {ready: tile('Ready', 'Messages that a worker can claim now'),
    claimed: tile('Claimed', 'Messages that workers hold'),
    delayed: tile('Delayed', 'Messages before the end of their delay'),
    dead_letters: tile('Dead letters', 'Messages that failed')};
  const alerts = h('ul', {id: 'attention'});
  const shown = h('p', {class: 'note'});
  const problem = h('p', {class: 'error', role: 'alert'});
  let size = {first: 0, most: 40};
  let timer = 0;

  const parameters = () => ({sort: state.sort, project: state.project, q: state.q});
  // The rows that the current request is for. The window may have moved since.
  let asked = size;
  const path = () => {
    asked = size;
    return withQuery('../queues', {...parameters(), offset: asked.first, limit: asked.most});
  };
  const table = new Table({id: 'queues', label: 'Queues', columns,
    key: (row) => `${row.project}\n${row.name}`,
    attributes: (row) => ({'data-queue': row.name, 'data-project': row.project}),
    empty: 'No queue matches. A queue exists from its first message on. Check the filter above.',
    onSort: (value) => change({sort: value}),
    onWindow: (first, most) => {
      size = {first, most: Math.min(most, 200)};
      clearTimeout(timer);
      timer = setTimeout(() => live.move(path()), 150);
    }});

  function showRows(data) {
    problem.textContent = '';
    table.setRows(data.queues, asked.first, data.matching);
    for (const [name, {value}] of Object.entries(tiles))
      value.textContent = count(data.totals[name]);
    update(shown, `${plural(data.matching, 'queue')} of ${count(data.total)}` +
      (data.complete ? '' : '. There are more than the page can sort'));
    for (const row of data.queues)
      if (projects.childElementCount < 200 && ![...projects.options].some((o) => o.value === row.project))
        projects.append(h('option', {value: row.project}));
  }

  function showError(error) {
    const needsProject = error.status === 403 && !state.project;
    problem.textContent = needsProject
      ? 'You may not see all projects. Enter the name of your project.' : errorText(error);
    if (needsProject)
      filterProject.placeholder = 'your project';
  }

  function change(values) {
    Object.assign(state, values);
    sort.value = state.sort;
    table.showSort(state.sort);
    table.forget();
    size = {...size, first: 0};
    setQuery(new URLSearchParams(Object.entries({...state, project: own ? '' : state.project,
      sort: state.sort === 'oldest_ready' ? '' : state.sort}).filter(([, v]) => v)));
    live.project = urgent.project = state.project || null;
    live.move(path());
    urgent.move(urgentPath());
  }

  const urgentPath = () => withQuery('../queues', {...parameters(), sort: 'oldest_ready', offset: 0,
    limit: 50});
  const live = new Live(path(), {project: state.project || null, onData: showRows, onError: showError});
  const urgent = new Live(urgentPath(), {project: state.project || null, every: 5000,
    onData: (data) => update(alerts, ...attention(data.queues))});

  const delayed = (key, field) => {
    let wait = 0;
    field.addEventListener('input', () => {
      clearTimeout(wait);
      wait = setTimeout(() => change({[key]: field.value}), 250);
    });
  };
  delayed('q', filterText);
  delayed('project', filterProject);
  sort.addEventListener('change', () => change({sort: sort.value}));
  main.append(h('h1', {}, 'Queues'),
    h('p', {class: 'lead'}, 'Each queue with its messages. The queue whose oldest message has waited ' +
      'longest is first. Open a queue to see which worker holds what.'),
    h('dl', {class: 'tiles'}, Object.values(tiles).map((t) => t.element)),
    h('section', {'aria-label': 'Needs attention'}, alerts),
    h('form', {class: 'filters', role: 'search', onsubmit: (e) => e.preventDefault()},
      h('p', {}, h('label', {for: 'filter-text'}, 'Filter'), filterText),
      h('p', {}, h('label', {for: 'filter-project'}, 'Project'), filterProject, projects),
      h('p', {}, h('label', {for: 'sort'}, 'Order'), sort), shown),
    problem, table.element);
  table.showSort(state.sort);
  live.start();
  urgent.start();
  return {close() {
    clearTimeout(timer);
    [live, urgent, table].forEach((x) => x.close());
  }};
}
