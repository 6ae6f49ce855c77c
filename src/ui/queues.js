// All queues, the one that waits longest first.
import {caller, Live, usualProject, withQuery} from './api.js';
import {sparkline} from './charts.js';
import {postCommand, suggestion} from './command.js';
import {errorText, freshness, h, say, Table, text, update} from './dom.js';
import {age, count, duration, NONE, perMinute, plural, short, visible} from './format.js';

const MOST_ROWS = 200;
const MOST_SUGGESTED = 200;
const OVERSCAN = 5;
const PHONE = matchMedia('(max-width: 44rem)');

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

// A phone has no space for long numbers, and no column for millions.
export function number(n) {
  return PHONE.matches || n >= 1e6 ? short(n) : count(n);
}

// 3h 12m, on a phone 3h.
function since(seconds) {
  return PHONE.matches ? age(seconds).split(' ')[0] : age(seconds);
}

export const has = (row, notice) => row.notices.includes(notice);
export const readyTooOld = (row) => has(row, 'ready_too_old');
export const claimTooOld = (row) => has(row, 'claim_too_old');

function deadCell(cell, row) {
  const value = number(row.dead_letters);
  const key = `${value} ${row.dead_letter_queue}`;
  if (cell.shown === key)
    return;
  cell.shown = key;
  if (row.dead_letters > 0)
    cell.replaceChildren(h('a', {href: deadHref(row.project, row.name), class: 'mark'}, value));
  else if (row.dead_letter_queue)
    cell.replaceChildren(h('a', {href: deadHref(row.project, row.dead_letter_queue),
      title: `Dead-letter queue of ${row.name}`, 'aria-label': `0 dead letters of ${row.name}`},
    '0'));
  else
    cell.replaceChildren(NONE);
}

function pausedBadge(badge, row) {
  const what = pausedText(row.paused);
  badge.hidden = !what;
  badge.title = `Paused: ${what}`;
  say(badge, what === 'claims' ? 'paused' : `${what} paused`);
}

const columns = [
  {name: 'name', title: 'Queue', sort: 'name', header: true, node: (row) => h('span', {class: 'name'},
    h('a', {href: queueHref(row.project, row.name), title: row.name}, text(row.name)),
    h('span', {class: 'badge'}), h('span', {class: 'project'}, text(row.project))),
  update: (cell, row) => pausedBadge(cell.querySelector('.badge'), row)},
  {name: 'ready', title: 'Ready', sort: 'ready', cls: 'number', hint: 'Messages that a worker can claim now',
    update: (cell, row) => warn(cell, number(row.ready), has(row, 'no_worker'))},
  {name: 'oldest_ready', title: 'Oldest waits', sort: 'oldest_ready', cls: 'number',
    hint: 'Time since the oldest ready message was posted, with its delay',
    update: (cell, row) => warn(cell, since(row.oldest_ready_age), readyTooOld(row))},
  {name: 'waiting', title: 'Workers waiting', cls: 'number',
    hint: 'Requests of workers that wait for messages',
    update: (cell, row) => warn(cell, number(row.waiters), has(row, 'no_worker'))},
  {name: 'claimed', title: 'Claimed', sort: 'claimed', cls: 'number medium',
    hint: 'Messages that workers hold', text: (row) => number(row.claimed)},
  {name: 'oldest_claim', title: 'Oldest claim', cls: 'number medium',
    hint: 'Time since the oldest claim was made',
    update: (cell, row) => warn(cell, since(row.oldest_claim_age), claimTooOld(row))},
  {name: 'delayed', title: 'Delayed', cls: 'number wide', text: (row) => number(row.delayed),
    hint: 'Messages before the end of their delay'},
  {name: 'posted', title: 'In / min', cls: 'number wide', hint: 'Posts per minute',
    text: (row) => perMinute(row.rates?.posted)},
  {name: 'delivered', title: 'Out / min', cls: 'number wide', hint: 'Deliveries per minute',
    text: (row) => perMinute(row.rates?.delivered)},
  {name: 'returned', title: 'Again / min', cls: 'number medium',
    hint: 'Messages per minute that became ready again: workers failed, or were too slow',
    update: (cell, row) => warn(cell, perMinute(row.rates?.requeued), has(row, 'returned'))},
  {name: 'dead_letters', title: 'Dead letters', cls: 'number', update: deadCell,
    hint: 'Messages that failed. 0 leads to the dead-letter queue of a queue'},
  {name: 'history', title: 'Last hour', cls: 'wide', hint: 'Ready messages', update: sparkline},
];

const sorts = {oldest_ready: 'Waiting longest', ready: 'Most ready', claimed: 'Most claimed',
  name: 'Name'};

function tile(label, hint) {
  const value = h('dd', {}, NONE);
  return {value, element: h('div', {class: 'tile'}, h('dt', {title: hint}, label), value)};
}

// For each notice of the server: how its line begins, and what it says of a queue.
const noticeTexts = {
  no_worker: [(n) => `${plural(n.messages, 'message')} and no worker: `, (q) => number(q.messages)],
  ready_too_old: [() => 'Waiting too long: ',
    (q) => `${number(q.messages)}, the oldest for ${duration(q.oldest_ready_age)}`],
  claim_too_old: [() => 'Held too long: ', (q) => duration(q.oldest_claim_age)],
  returned: [(n) => `${plural(n.messages, 'message')} a minute come back: `,
    (q) => number(q.messages)],
  paused: [() => 'Paused: ', (q) => q.messages ? `${number(q.messages)} ready` : ''],
  dead_letters: [(n) => `${plural(n.messages, 'dead letter')}: `, (q) => number(q.messages)],
};

function noticeLine(notice) {
  const [begin, detail] = noticeTexts[notice.notice];
  const href = notice.notice === 'dead_letters' ? deadHref : queueHref;
  const more = notice.count - notice.queues.length;
  return h('li', {class: 'bad', 'data-notice': notice.notice}, begin(notice),
    notice.queues.map((q, i) => [i ? ', ' : '',
      h('a', {href: href(q.project, q.name), title: visible(q.project)}, text(q.name)),
      detail(q) && ` (${detail(q)})`]), more ? ` and ${count(more)} more` : '');
}

function noticeLines({notices, total}) {
  const lines = notices.filter((n) => Object.hasOwn(noticeTexts, n.notice)).map(noticeLine);
  return lines.length || !total ? lines
    : [h('li', {class: 'good'}, 'All is well: no queue needs attention.')];
}

// The sums of all queues that match, and the notices of all queues.
function overview() {
  const tiles = {ready: tile('Ready', 'Messages that a worker can claim now'),
    claimed: tile('Claimed', 'Messages that workers hold'),
    delayed: tile('Delayed', 'Messages before the end of their delay'),
    dead_letters: tile('Dead letters', 'Messages that failed')};
  const lines = h('ul', {id: 'attention'});
  return {
    tiles: h('dl', {class: 'tiles'}, Object.values(tiles).map((t) => t.element)),
    notices: h('section', {'aria-label': 'Needs attention'}, lines),
    show(data) {
      for (const [name, {value}] of Object.entries(tiles))
        say(value, number(data.totals[name]));
      update(lines, ...noticeLines(data));
    },
  };
}

// `down` moves the focus to the first row.
function filterForm(state, change, down) {
  const field = (id, value, attributes) => h('input', {id, type: 'search', value,
    autocomplete: 'off', spellcheck: 'false', ...attributes});
  const name = field('filter-text', state.q, {'data-filter': true, placeholder: 'part of a name'});
  const project = field('filter-project', state.project,
    {list: 'projects', placeholder: 'all projects', disabled: Boolean(caller.project)});
  const projects = h('datalist', {id: 'projects'});
  const sort = h('select', {id: 'sort', onchange: () => change({sort: sort.value})},
    Object.entries(sorts).map(([value, label]) =>
      h('option', {value, selected: value === state.sort}, label)));
  const note = h('p', {class: 'note', role: 'status'});
  const changeSoon = (key, input) => {
    let timer = 0;
    input.addEventListener('input', () => {
      clearTimeout(timer);
      timer = setTimeout(() => input.value !== state[key] && change({[key]: input.value}), 250);
    });
  };
  changeSoon('q', name);
  name.addEventListener('keydown', (event) => {
    if (!['ArrowDown', 'Enter'].includes(event.key) || event.isComposing)
      return;
    event.preventDefault();
    if (name.value !== state.q)
      change({q: name.value});
    down();
  });
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

// What to do on a server, or in a project, without a queue.
function firstMessage({project}) {
  const where = project ? ['The project ', text(project), ' has'] : 'There is';
  return suggestion([where, ' no queue. A queue exists from its first message on. Post one:'],
    postCommand(project, 'jobs'));
}

export function queuesView({main, query, setQuery}) {
  const state = {project: query.get('project') || usualProject(), q: query.get('q') || '',
    sort: sorts[query.get('sort')] ? query.get('sort') : 'oldest_ready'};
  const problem = h('p', {class: 'error', role: 'alert'});
  const first = h('div', {id: 'first-message', class: 'panel', hidden: true});
  const sums = overview();
  const fresh = freshness(main);
  const form = filterForm(state, change, () => {
    goesDown = !table.rows.length || !table.focusFirst();
  });
  const path = () => withQuery('../queues',
    {...state, offset: asked.first, limit: Math.min(asked.most, MOST_ROWS)});
  // The rows that the request is for, and those in the window, which may have moved since.
  let asked = {first: 0, most: 40};
  let wanted = asked;
  let goesDown = false;   // to the first row, once it is there
  let timer = 0;
  let closed = false;
  const ask = () => {
    asked = wanted;
    return path();
  };
  const table = new Table({id: 'queues', label: 'Queues', columns, overscan: OVERSCAN,
    key: (row) => `${row.project}\n${row.name}`,
    attributes: (row) => ({'data-queue': row.name, 'data-project': row.project}),
    empty: 'No queue matches the filter.',
    onSort: (sort) => change({sort}),
    onWindow(first, most) {
      wanted = {first, most};
      clearTimeout(timer);
      timer = setTimeout(() => live.move(ask()), 150);
    }});
  const live = new Live(ask(), {onData(data) {
    say(problem, '');
    fresh.fresh();
    const none = data.total === 0;
    first.hidden = !none;
    form.element.hidden = none && !state.q && !state.project;
    table.element.hidden = none;
    update(first, none ? firstMessage(state) : '');
    table.setRows(data.queues, asked.first, data.matching);
    table.element.classList.toggle('same-project',
      new Set(table.rows.map((row) => row.project)).size < 2);
    sums.show(data);
    form.suggest(data.queues);
    say(form.note, `${plural(data.matching, 'queue')} of ${count(data.total)}` +
      (data.complete ? '' : '. There are more than the page can sort'));
    if (goesDown)
      table.focusFirst();
    goesDown = false;
  }, onError(error) {
    // A token for several projects gets 400 without one.
    const needsProject = [400, 403].includes(error.status) && !state.project;
    say(problem, fresh.failed(error) ? '' : needsProject
      ? 'You may not see all projects. Enter the name of your project.' : errorText(error));
    if (needsProject)
      form.project.placeholder = 'your project';
  }});

  function change(values) {
    if (closed)
      return;
    Object.assign(state, values);
    form.sort.value = state.sort;
    table.showSort(state.sort);
    table.element.classList.toggle('one-project', Boolean(state.project));
    table.forget();
    wanted = {...wanted, first: 0};
    const kept = {q: state.q, project: caller.project ? '' : state.project,
      sort: state.sort === 'oldest_ready' ? '' : state.sort};
    setQuery(new URLSearchParams(Object.entries(kept).filter(([, value]) => value)));
    live.project = state.project || null;
    live.move(ask());
  }

  main.append(h('div', {class: 'head'}, h('h1', {}, 'Queues'), sums.tiles), fresh.note, sums.notices,
    form.element, problem, first, table.element);
  change({});
  live.start();
  return {close() {
    closed = true;
    clearTimeout(timer);
    [live, table, fresh].forEach((x) => x.close());
  }};
}
