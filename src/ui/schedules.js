// The schedules of a project, by queue and name.
import {deleteSchedule, pauseSchedule} from './actions.js';
import {caller, getJson, Live, may, usualProject, view, withQuery} from './api.js';
import {actionButton, errorText, h, lead, say, Table, text, update} from './dom.js';
import {clock, count, duration, NONE, plural} from './format.js';
import {messageHref, queueHref, scheduleHref} from './queues.js';

const EVERY_MS = 2000;
const PAGES = 5;         // of the list that each click on "Show more" adds
const PROJECTS_SEEN = 200;

// ---------------------------------------------------------------- texts of a schedule

// An interval without rounding.
export function interval(seconds) {
  const exact = seconds < 3600 || seconds % (seconds < 86400 ? 60 : 3600) === 0;
  return exact ? duration(seconds) : `${count(seconds)} s`;
}

export function recurrence(row) {
  return row.cron === undefined ? [`every ${interval(row.every)}`] : [text(row.cron)];
}

export const badge = (row) => row.paused ? h('span', {class: 'badge'}, 'paused') : null;

function nextCell(cell, row) {
  const ms = Date.parse(row.next[0]);
  const seconds = (ms - Date.now() - caller.clockBehind) / 1000;
  const relative = Number.isNaN(ms) ? NONE : seconds > 0 ? `in ${duration(seconds)}` : 'now';
  update(cell, row.paused ? badge(row) : relative,
    Number.isNaN(ms) ? null : h('span', {class: 'project'}, clock(ms)),
    row.error ? h('span', {class: 'cannot'}, 'Cannot post: ', text(row.error)) : null);
}

export function lastMessage(project, row) {
  const {message_id: id, message_state: state} = row.last;
  return id ? h('a', {href: messageHref(project, row.queue, id)}, state) : 'message gone';
}

function lastCell(project) {
  return (cell, row) => update(cell, ...row.last
    ? [clock(Date.parse(row.last.due)), h('span', {class: 'project'}, lastMessage(project, row))]
    : [NONE]);
}

// ---------------------------------------------------------------- the table

function columnsFor(project, act) {
  const number = (name, title, hint) => ({name, title, hint, cls: 'number wide',
    text: (row) => count(row[`${name}_count`])});
  const columns = [
    {name: 'name', title: 'Schedule', header: true, node: (row) => [
      h('a', {href: scheduleHref(project, row.queue, row.name), title: row.name}, text(row.name)),
      h('span', {class: 'project'}, h('a', {href: queueHref(project, row.queue)},
        text(row.queue)))]},
    {name: 'when', title: 'When', hint: 'Cron expression with its time zone, or interval',
      update: (cell, row) => update(cell, recurrence(row),
        row.timezone ? h('span', {class: 'project'}, text(row.timezone)) : null)},
    {name: 'next', title: 'Next', hint: 'Next due time', update: nextCell},
    {name: 'last', title: 'Last', cls: 'medium', update: lastCell(project),
      hint: 'Due time of the latest message, and the state of the message'},
    {name: 'posted', title: 'Posted', cls: 'number medium', text: (row) => count(row.posted)},
    number('missed', 'Missed', 'Due times that passed without a message'),
    number('skipped', 'Skipped', 'Due times at which a message was still in the queue'),
    number('refused', 'Refused', 'Attempts to post that failed'),
  ];
  if (may('schedules:set'))
    columns.push({name: 'actions', title: 'Actions', cls: 'wide', node: (row) => [
      actionButton(null, '', () => act(pauseSchedule, row), 'pause'),
      actionButton(null, 'Delete…', () => act(deleteSchedule, row), 'danger')],
    update: (cell, row) => say(cell.firstElementChild, row.paused ? 'Resume…' : 'Pause…')});
  return columns;
}

const keyOf = (row) => `${row.queue}\n${row.name}`;

function inOrder(rows) {
  const compare = (a, b) => a < b ? -1 : a > b ? 1 : 0;
  return rows.sort((a, b) => compare(a.queue, b.queue) || compare(a.name, b.name));
}

// ---------------------------------------------------------------- the list

// Reads `pages` pages. The first one is there.
async function readPages(response, path, project, pages) {
  const rows = [];
  let data = await response.json();
  for (let page = 1; ; page++) {
    rows.push(...data.schedules);
    const next = data.links?.find((link) => link.rel === 'next')?.href;
    if (!next || page >= pages)
      return {rows: inOrder(rows), more: Boolean(next)};
    const marker = new URLSearchParams(next.split('?')[1]).get('marker');
    data = await getJson(withQuery(path, {marker}), {project});
  }
}

// The list, again and again.
class ScheduleList {
  #pages = PAGES;

  constructor(project, path) {
    this.rows = new Map();
    this.problem = h('p', {class: 'error', role: 'alert'});
    this.note = h('p', {class: 'note', role: 'status'});
    this.more = h('button', {id: 'schedules-more', type: 'button', hidden: true, onclick: () => {
      this.#pages += PAGES;
      this.live.move();
    }}, 'Show more');
    const act = async (action, row) => {
      const done = await action(project, this.rows.get(keyOf(row)) || row);
      this.live.move();
      return done;
    };
    this.table = new Table({id: 'schedules', label: 'Schedules', whole: true, key: keyOf,
      columns: columnsFor(project, act),
      attributes: (row) => ({'data-schedule': row.name, 'data-queue': row.queue}),
      empty: 'There is no schedule. The command "claimd schedule set" makes one.'});
    this.live = new Live(path, {project, every: EVERY_MS, onData: (data) => this.#show(data),
      read: (response) => readPages(response, path, project, this.#pages),
      onError: (error) => say(this.problem, errorText(error))});
    this.element = h('div', {}, this.problem, this.table.element,
      h('p', {class: 'buttons'}, this.more, this.note));
    this.live.start();
  }

  #show({rows, more}) {
    say(this.problem, '');
    this.rows = new Map(rows.map((row) => [keyOf(row), row]));
    this.table.setRows(rows);
    this.more.hidden = !more;
    say(this.note, more ? `${plural(rows.length, 'schedule')}, and there are more`
      : plural(rows.length, 'schedule'));
  }

  close() {
    this.live.close();
    this.table.close();
  }
}

// ---------------------------------------------------------------- the view

// The projects that have queues, for callers that may see all of them.
async function projectsSeen() {
  const data = await getJson(withQuery('../queues', {limit: PROJECTS_SEEN}));
  return [...new Set(data.queues.map((row) => row.project))];
}

export function schedulesView({main, query, setQuery}) {
  const state = {project: query.get('project') || usualProject(), queue: query.get('queue') || ''};
  const problem = h('p', {class: 'error', role: 'alert'});
  const box = h('div');
  const projects = h('datalist', {id: 'projects'});
  const field = (id, value, attributes) => h('input', {id, type: 'search', value,
    autocomplete: 'off', spellcheck: 'false', ...attributes});
  const project = field('filter-project', state.project,
    {list: 'projects', placeholder: 'your project', disabled: Boolean(caller.project)});
  const queue = field('filter-queue', state.queue, {'data-filter': true, placeholder: 'all queues'});
  const form = h('form', {class: 'filters', role: 'search', onsubmit(event) {
    event.preventDefault();
    change({project: project.value.trim(), queue: queue.value.trim()});
  }}, h('p', {}, h('label', {for: 'filter-project'}, 'Project'), project, projects),
  h('p', {}, h('label', {for: 'filter-queue'}, 'Queue'), queue),
  h('button', {}, 'Show'));
  let list = null;
  let closed = false;

  function change(values) {
    Object.assign(state, values);
    list?.close();
    list = null;
    box.replaceChildren();
    say(problem, state.project ? '' : 'Enter the name of a project.');
    setQuery(new URLSearchParams(Object.entries({project: caller.project ? '' : state.project,
      queue: state.queue}).filter(([, value]) => value)));
    if (!state.project)
      return;
    try {
      list = new ScheduleList(state.project,
        state.queue ? view(state.queue, '/schedules') : '../schedules');
      box.append(list.element);
    } catch (error) {
      say(problem, errorText(error));
    }
  }

  main.append(h('h1', {}, 'Schedules'),
    lead('A schedule posts a message to its queue at each due time.'), form, problem, box);
  change({});
  if (caller.all_projects)
    projectsSeen().then((seen) => {
      projects.append(...seen.map((value) => h('option', {value})));
      if (seen.length !== 1 || state.project || closed)
        return;
      [project.value] = seen;
      change({project: seen[0]});
    }).catch(() => {});
  return {close() {
    closed = true;
    list?.close();
  }};
}
