// All queues, the one that waits longest first.
import {caller, Live, usualProject, withQuery} from './api.js';
import {sparkline} from './charts.js';
import {errorText, h, lead, say, Table, text, update} from './dom.js';
import {age, count, duration, NONE, perMinute, plural, visible} from './format.js';

// The thresholds of the alerts ClaimdOldestMessageTooOld and ClaimdOldestClaimTooOld.
const READY_TOO_OLD = 1800;
const STANDS_STILL = 300;
const CLAIM_TOO_OLD = 3600;
const MOST_ROWS = 200;
const MOST_SUGGESTED = 200;

export const queueHref = (project, name) =>
  `#/queue/${encodeURIComponent(project)}/${encodeURIComponent(name)}`;
export const deadHref = (project, name) =>
  `#/dead/${encodeURIComponent(project)}/${encodeURIComponent(name)}`;
export const messageHref = (project, queue, id) =>
  `#/message/${encodeURIComponent(project)}/${encodeURIComponent(queue)}/${encodeURIComponent(id)}`;

export const schedulesHref = (project, queue) =>
  `#/schedules?${new URLSearchParams({project, queue})}`;
export const scheduleHref = (project, queue, name) =>
  `#/schedule/${[project, queue, name].map(encodeURIComponent).join('/')}`;

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
      title: `Dead-letter queue of ${row.name}`, 'aria-label': `0 dead letters of ${row.name}`},
    '0'));
  else
    cell.replaceChildren(NONE);
}

function pausedCell(cell, row) {
  const what = pausedText(row.paused);
  if (cell.shown !== what)
    cell.replaceChildren(...what.split(', ').filter(Boolean).map((k) =>
      h('span', {class: 'badge'}, `${k} paused`)));
  cell.shown = what;
}

const columns = [
  {name: 'name', title: 'Queue', sort: 'name', header: true, node: (row) => [
    h('a', {href: queueHref(row.project, row.name), title: row.name}, text(row.name)),
    h('span', {class: 'project'}, h('span', {class: 'badge narrow'}, 'paused'), text(row.project))],
  update: (cell, row) => {
    cell.querySelector('.badge').hidden = !pausedText(row.paused);
  }},
  {name: 'ready', title: 'Ready', sort: 'ready', cls: 'number', text: (row) => count(row.ready),
    hint: 'Messages that a worker can claim now'},
  {name: 'oldest_ready', title: 'Oldest waits', sort: 'oldest_ready', cls: 'number',
    hint: 'Time since the oldest ready message was posted, with its delay',
    update: (cell, row) => warn(cell, age(row.oldest_ready_age), readyTooOld(row))},
  {name: 'claimed', title: 'Claimed', sort: 'claimed', cls: 'number',
    hint: 'Messages that workers hold', text: (row) => count(row.claimed)},
  {name: 'oldest_claim', title: 'Oldest claim', cls: 'number medium',
    hint: 'Time since the oldest claim was made',
    update: (cell, row) => warn(cell, age(row.oldest_claim_age), claimTooOld(row))},
  {name: 'delayed', title: 'Delayed', cls: 'number wide', text: (row) => count(row.delayed),
    hint: 'Messages before the end of their delay'},
  {name: 'posted', title: 'In / min', cls: 'number wide', hint: 'Posts per minute',
    text: (row) => perMinute(row.rates?.posted)},
  {name: 'delivered', title: 'Out / min', cls: 'number wide', hint: 'Deliveries per minute',
    text: (row) => perMinute(row.rates?.delivered)},
  {name: 'dead_letters', title: 'Dead letters', cls: 'number', update: deadCell,
    hint: 'Messages that failed. 0 leads to the dead-letter queue of a queue'},
  {name: 'history', title: 'Last hour', cls: 'wide', hint: 'Ready messages', update: sparkline},
  {name: 'paused', title: 'Paused', cls: 'medium', update: pausedCell},
];

const sorts = {oldest_ready: 'Waiting longest', ready: 'Most ready', claimed: 'Most claimed',
  name: 'Name'};

function tile(label, hint) {
  const value = h('dd', {}, NONE);
  return {value, element: h('div', {class: 'tile'}, h('dt', {title: hint}, label), value)};
}

// The age includes the delay of a message. So workers must also need that long for all ready messages.
export function readyTooOld(row) {
  return row.oldest_ready_age > READY_TOO_OLD &&
    row.ready > READY_TOO_OLD * (row.rates?.delivered ?? 0);
}

export function claimTooOld(row) {
  return row.oldest_claim_age > CLAIM_TOO_OLD;
}

// Messages wait, and no worker got one in the last minute.
function standsStill(row) {
  return row.oldest_ready_age > STANDS_STILL && row.rates?.delivered === 0 && !row.paused.claims;
}

// What needs attention, from the rows that have waited longest.
function attention(rows, totals) {
  const items = [];
  const work = rows.find((row) => row.ready > 0 && row.dead_letters < row.ready);
  const link = (row, href = queueHref(row.project, row.name)) => h('a', {href}, text(row.name));
  if (work) {
    const held = work.claimed ? `and workers hold ${plural(work.claimed, 'message')}.`
      : work.waiters ? `and ${plural(work.waiters, 'request')} of workers wait.`
      : 'and no worker holds a message of it or waits for one.';
    const stuck = readyTooOld(work) || standsStill(work);
    items.push(h('li', {class: stuck ? 'bad' : 'good'}, stuck ? 'Stuck: ' : 'Waits longest: ',
      link(work), `. Its oldest ready message was posted ${duration(work.oldest_ready_age)} ago, `,
      held));
  }
  const paused = rows.filter((row) => pausedText(row.paused));
  if (paused.length)
    items.push(h('li', {class: 'bad'}, 'Paused: ', listOf(paused.map((row) => link(row)))));
  const dead = rows.filter((row) => row.dead_letters > 0);
  const elsewhere = dead.reduce((n, row) => n - row.dead_letters, totals.dead_letters);
  const deadLinks = dead.map((row) =>
    [link(row, deadHref(row.project, row.name)), ` (${count(row.dead_letters)})`]);
  if (elsewhere > 0)
    deadLinks.splice(2, Infinity, `others (${count(totals.dead_letters)} in all)`);
  if (deadLinks.length)
    items.push(h('li', {class: 'bad'}, 'Dead letters: ', listOf(deadLinks)));
  return items.length ? items : [h('li', {class: 'good'}, 'No message waits.')];
}

function listOf(items) {
  const shown = items.slice(0, 3).flatMap((item, i) => [i ? ', ' : '', item].flat());
  return items.length > 3 ? [...shown, ' and more'] : shown;
}

// The sums of all queues that match, and what needs attention.
function overview() {
  const tiles = {ready: tile('Ready', 'Messages that a worker can claim now'),
    claimed: tile('Claimed', 'Messages that workers hold'),
    delayed: tile('Delayed', 'Messages before the end of their delay'),
    dead_letters: tile('Dead letters', 'Messages that failed')};
  const alerts = h('ul', {id: 'attention'});
  return {
    elements: [h('dl', {class: 'tiles'}, Object.values(tiles).map((t) => t.element)),
      h('section', {'aria-label': 'Needs attention'}, alerts)],
    showTotals(totals) {
      for (const [name, {value}] of Object.entries(tiles))
        value.textContent = count(totals[name]);
    },
    showUrgent: (data) => update(alerts, ...attention(data.queues, data.totals)),
  };
}

function filterForm(state, change) {
  const field = (id, value, attributes) => h('input', {id, type: 'search', value,
    autocomplete: 'off', spellcheck: 'false', ...attributes});
  const name = field('filter-text', state.q, {'data-filter': true, placeholder: 'part of a name'});
  const project = field('filter-project', state.project,
    {list: 'projects', placeholder: 'all projects', disabled: Boolean(caller.project)});
  const projects = h('datalist', {id: 'projects'});
  const sort = h('select', {id: 'sort', onchange: () => change({sort: sort.value})},
    Object.entries(sorts).map(([value, label]) =>
      h('option', {value, selected: value === state.sort}, label)));
  const note = h('p', {class: 'note'});
  const changeSoon = (key, input) => {
    let timer = 0;
    input.addEventListener('input', () => {
      clearTimeout(timer);
      timer = setTimeout(() => change({[key]: input.value}), 250);
    });
  };
  changeSoon('q', name);
  changeSoon('project', project);
  const element = h('form', {class: 'filters', role: 'search', onsubmit: (e) => e.preventDefault()},
    h('p', {}, h('label', {for: 'filter-text'}, 'Filter'), name),
    h('p', {}, h('label', {for: 'filter-project'}, 'Project'), project, projects),
    h('p', {}, h('label', {for: 'sort'}, 'Order'), sort), note);
  return {element, note, project, sort, suggest(rows) {
    const known = new Set([...projects.options].map((o) => o.value));
    for (const row of rows)
      if (known.size < MOST_SUGGESTED && !known.has(row.project) &&
          visible(row.project) === row.project) {
        known.add(row.project);
        projects.append(h('option', {value: row.project}));
      }
  }};
}

export function queuesView({main, query, setQuery}) {
  const state = {project: query.get('project') || usualProject(), q: query.get('q') || '',
    sort: sorts[query.get('sort')] ? query.get('sort') : 'oldest_ready'};
  const problem = h('p', {class: 'error', role: 'alert'});
  const sums = overview();
  const form = filterForm(state, change);
  const path = (more) => withQuery('../queues', {...state, ...more});
  // The rows that the request is for, and those in the window, which may have moved since.
  let asked = {first: 0, most: 40};
  let wanted = asked;
  let timer = 0;
  let closed = false;
  const ask = () => {
    asked = wanted;
    return path({offset: asked.first, limit: Math.min(asked.most, MOST_ROWS)});
  };
  const table = new Table({id: 'queues', label: 'Queues', columns,
    key: (row) => `${row.project}\n${row.name}`,
    attributes: (row) => ({'data-queue': row.name, 'data-project': row.project}),
    empty: 'No queue matches. A queue exists from its first message on. Check the filter above.',
    onSort: (sort) => change({sort}),
    onWindow(first, most) {
      wanted = {first, most};
      clearTimeout(timer);
      timer = setTimeout(() => live.move(ask()), 150);
    }});
  const live = new Live(ask(), {onData(data) {
    say(problem, '');
    urgent.start();
    table.setRows(data.queues, asked.first, data.matching);
    sums.showTotals(data.totals);
    form.suggest(data.queues);
    update(form.note, `${plural(data.matching, 'queue')} of ${count(data.total)}` +
      (data.complete ? '' : '. There are more than the page can sort'));
  }, onError(error) {
    // A token for several projects gets 400 without one.
    const needsProject = [400, 403].includes(error.status) && !state.project;
    say(problem, needsProject
      ? 'You may not see all projects. Enter the name of your project.' : errorText(error));
    if (needsProject)
      form.project.placeholder = 'your project';
  }});
  const urgent = new Live('', {every: 5000, onData: sums.showUrgent});

  function change(values) {
    if (closed)
      return;
    Object.assign(state, values);
    form.sort.value = state.sort;
    table.showSort(state.sort);
    table.forget();
    wanted = {...wanted, first: 0};
    const kept = {q: state.q, project: caller.project ? '' : state.project,
      sort: state.sort === 'oldest_ready' ? '' : state.sort};
    setQuery(new URLSearchParams(Object.entries(kept).filter(([, value]) => value)));
    live.project = urgent.project = state.project || null;
    live.move(ask());
    urgent.move(path({sort: 'oldest_ready', offset: 0, limit: 50}));
  }

  main.append(h('h1', {}, 'Queues'),
    lead('Each queue with its messages. The queue whose oldest message has waited longest is ' +
      'first. Open a queue to see which worker holds what.'),
    ...sums.elements, form.element, problem, table.element);
  change({});
  live.start();
  return {close() {
    closed = true;
    clearTimeout(timer);
    [live, urgent, table].forEach((x) => x.close());
  }};
}
