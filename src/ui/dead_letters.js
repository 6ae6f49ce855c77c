// Dead letters: why they failed, and what to do with them.
import {deleteMany, inPieces, queueName, redrive} from './actions.js';
import {ApiError, getJson, Live, may, send, v2, view, withQuery} from './api.js';
import {
  act, confirm, errorText, freshness, h, lead, lineText, linesText, say, section, Table, text, toast,
  update, workerNode,
} from './dom.js';
import {clock, count, NONE, plural} from './format.js';
import {idLink, idParts, MessageList} from './messages.js';
import {crumbs, followRow} from './queue.js';
import {queueHref} from './queues.js';

const GROUPS_EVERY_MS = 5000;
const IDS_PER_PAGE = 200;
const IDS_PER_REDRIVE = 1000;
const STEPS = 40;

const stepFor = (total) => Math.min(IDS_PER_REDRIVE, Math.max(1, Math.ceil(total / STEPS)));

// ---------------------------------------------------------------- groups

function reasonNode(reason, show = lineText) {
  return reason === null ? h('em', {}, 'no reason given') : show(reason);
}

// The end of a Client-ID says more than its beginning.
function lastWorker(g) {
  if (g.several_clients)
    return h('em', {}, 'several');
  if (g.worker || g.address)
    return workerNode(g);
  return g.client === null ? NONE : h('span', {class: 'cut', title: g.client}, idParts(g.client));
}

function groupColumns(project, queue, choose) {
  return [
    {name: 'reason', title: 'Reason of the last failure', header: true, node: (g) =>
      h('button', {type: 'button', class: 'link', onclick: () => choose(g)}, reasonNode(g.reason))},
    {name: 'count', title: 'Letters', cls: 'number', text: (g) => count(g.count)},
    {name: 'origin', title: 'From queue', node: (g) => g.origin === null ? NONE
      : h('a', {href: queueHref(project, g.origin)}, text(g.origin))},
    {name: 'worker', title: 'Worker', cls: 'medium', hint: 'The worker of the last failure',
      update: (cell, g) => update(cell, lastWorker(g))},
    {name: 'oldest', title: 'Oldest', cls: 'medium', text: (g) => clock(Date.parse(g.oldest_at))},
    {name: 'example', title: 'Example', cls: 'medium', update: (cell, g) => update(cell,
      idLink(project, queue, g.example))},
  ];
}

const groupKey = (g) => JSON.stringify([g.reason, g.origin]);

function mergeGroups(known, further) {
  const all = new Map(known.map((g) => [groupKey(g), {...g}]));
  for (const g of further) {
    const same = all.get(groupKey(g));
    if (same) {
      same.count += g.count;
      same.several_clients ||= g.several_clients || same.client !== g.client;
    } else {
      all.set(groupKey(g), g);
    }
  }
  return [...all.values()].sort((a, b) => b.count - a.count);
}

class Groups {
  #seen = {groups: [], searched: 0, other: 0};

  constructor(project, queue, choose) {
    this.path = withQuery(view(queue, '/messages'), {group: 'reason'});
    this.project = project;
    this.table = new Table({id: 'groups', label: 'Reasons', whole: true, key: groupKey,
      columns: groupColumns(project, queue, choose),
      attributes: (g) => ({'data-reason': g.reason ?? ''}),
      empty: 'No message is here. Messages arrive when workers fail on them too often, if the ' +
        'metadata of their queue names this one as _dead_letter_queue and has _max_claim_count.'});
    this.note = h('p', {class: 'note'});
    this.more = h('button', {type: 'button', hidden: true, onclick: () => act(this.more, () =>
      this.#further())}, 'Continue');
    this.element = h('div', {}, this.table.element,
      h('p', {class: 'buttons'}, this.more, this.note));
    this.live = new Live(this.path, {project, every: GROUPS_EVERY_MS,
      onData: (data) => this.#show(data),
      // The view says that the queue or the server is gone.
      onError: (error) => {
        if (error.status && error.status !== 404 && error.status < 502)
          update(this.note, errorText(error));
      }}).start();
  }

  close() {
    this.live.close();
    this.table.close();
  }

  #show(data, known = {groups: [], searched: 0, other: 0}) {
    this.#seen = {groups: mergeGroups(known.groups, data.groups), marker: data.marker,
      searched: known.searched + data.searched, other: known.other + data.other};
    this.table.setRows(this.#seen.groups);
    this.more.hidden = data.marker === null;
    const others = this.#seen.other ? `, ${count(this.#seen.other)} with further reasons` : '';
    update(this.note, `Searched ${count(this.#seen.searched)} of ${count(data.total)}${others}`);
  }

  async #further() {
    this.live.close();
    const path = withQuery(this.path, {}) + `&marker=${encodeURIComponent(this.#seen.marker)}`;
    this.#show(await getJson(path, {project: this.project}), this.#seen);
  }
}

// ---------------------------------------------------------------- long work

// A bar that advances, and a button that stops the work.
class Work {
  constructor() {
    this.bar = h('progress', {id: 'progress', max: 1, value: 0, 'aria-label': 'Progress'});
    this.label = h('span', {role: 'status'});
    this.stop = h('button', {id: 'progress-stop', type: 'button', onclick: () => {
      this.stopped = true;
    }}, 'Stop');
    this.element = h('div', {class: 'panel', hidden: true}, this.bar,
      h('p', {class: 'buttons'}, this.stop, this.label));
  }

  // Resolves to how many are done.
  async run(verb, total, work) {
    let done = 0;
    this.stopped = false;
    this.stop.hidden = this.element.hidden = false;
    const advance = (n) => {
      done += n;
      this.bar.max = Math.max(total, done, 1);
      this.bar.value = done;
      this.label.textContent = `${verb} ${count(done)} of ${count(this.bar.max)}`;
    };
    advance(0);
    try {
      await work(advance, () => this.stopped);
    } finally {
      this.stop.hidden = true;
      this.label.textContent = `${verb} ${count(done)}${this.stopped ? ', then stopped' : ''}.`;
    }
    return done;
  }
}

async function collectIds({project, queue, filter}, state, work) {
  const ids = [];
  const base = withQuery(view(queue, '/messages'), {...filter, state, limit: IDS_PER_PAGE}) +
    (filter.reason === '' ? '&reason=' : '');
  await work.run('Collected', 0, async (advance, stopped) => {
    let marker = null;
    do {
      const page = await getJson(marker === null ? base
        : `${base}&marker=${encodeURIComponent(marker)}`, {project});
      ids.push(...page.messages.map((m) => m.id));
      advance(page.messages.length);
      marker = page.marker;
    } while (marker !== null && !stopped());
  });
  if (work.stopped)
    throw new ApiError(0, 'Stopped', 'Nothing was changed.');
  return ids;
}

// ---------------------------------------------------------------- redrive

async function dryRun({project, queue}, ids, to) {
  const sum = {moved: 0, remaining: 0, without_origin: 0, key_held: 0, by_target: {}};
  const add = async (body) => {
    const one = await redrive(project, queue, {...body, ...to, dry_run: true});
    sum.moved += one.moved;
    sum.key_held += one.key_held;
    Object.assign(sum, {remaining: one.remaining, without_origin: one.without_origin});
    for (const [target, n] of Object.entries(one.by_target))
      sum.by_target[target] = (sum.by_target[target] || 0) + n;
  };
  if (ids)
    await inPieces(ids, IDS_PER_REDRIVE, () => false, (piece) => add({ids: piece}));
  else
    await add({});
  return sum;
}

function targetList(byTarget) {
  return h('ul', {}, Object.entries(byTarget).map(([target, n]) =>
    h('li', {}, `${plural(n, 'message')} to `, h('strong', {}, text(target)))));
}

async function confirmRedrive({project, queue}, dry, ids, to) {
  const further = ids ? 0
    : Math.max(0, dry.remaining - dry.key_held - (to.to ? 0 : dry.without_origin));
  const left = ids ? ids.length - dry.moved : 0;
  if (dry.moved === 0) {
    toast(dry.without_origin ? 'Nothing to move. These letters have no queue of origin. Name a ' +
      'queue in the field "Put back to".' : dry.key_held ? 'Nothing to move. Messages of the target ' +
      'have the keys of these letters.' : 'Nothing to move. No such dead letter is ready.', true);
    return false;
  }
  return confirm({title: 'Put dead letters back (redrive)?', danger: false,
    ok: `Put back ${plural(dry.moved + further, 'message')}`,
    content: [h('p', {}, 'From ', ...queueName(project, queue), ' this moves'),
      targetList(dry.by_target),
      further ? `and then up to ${plural(further, 'further letter')}. Those that a worker holds ` +
        'stay.' : '',
      left ? `${plural(left, 'letter stays', 'letters stay')}: not ready, without an origin, or the ` +
        'target has a message with the same key.' : '',
      'They go to the end of their queue, and their age and attempts count from 0. If the cause ' +
      'of the failure is not fixed, they come back here.']});
}

async function redriveAll(context, ids, to, work) {
  const dry = await dryRun(context, ids, to);
  if (!await confirmRedrive(context, dry, ids, to))
    return '';
  const {project, queue} = context;
  const total = ids ? dry.moved : dry.moved + dry.remaining - (to.to ? 0 : dry.without_origin);
  const step = stepFor(total);
  const moved = await work.run('Put back', total, async (advance, stopped) => {
    if (ids) {
      await inPieces(ids, step, stopped, async (piece) =>
        advance((await redrive(project, queue, {ids: piece, ...to})).moved));
      return;
    }
    for (let n = 1; n > 0 && !stopped();) {
      n = (await redrive(project, queue, {limit: step, ...to})).moved;
      advance(n);
    }
  });
  if (moved)
    work.label.append(' To ', ...Object.keys(dry.by_target).slice(0, 3).flatMap((target, i) =>
      [i ? ', ' : '', h('a', {href: queueHref(project, target)}, text(target))]));
  return `Put back ${plural(moved, 'message')}.`;
}

// ---------------------------------------------------------------- delete

async function deleteAll(context, ids, total, work) {
  const {project, queue} = context;
  const n = ids ? ids.length : total;
  if (n === 0)
    return 'Nothing to delete.';
  const yes = await confirm({title: 'Delete dead letters?', ok: `Delete ${plural(n, 'message')}`,
    content: [h('p', {}, `This deletes ${ids ? '' : 'all '}${plural(n, 'message')} of the queue `,
      ...queueName(project, queue), ids ? '.' : ', also those that are no dead letters.'),
    'You cannot undo this.']});
  if (!yes)
    return '';
  const done = await work.run('Deleted', n, async (advance, stopped) => {
    if (ids) {
      await deleteMany(project, queue, ids, stopped, advance);
      return;
    }
    await send('POST', v2(queue, '/purge'), project, {resource_types: ['messages']});
    advance(n);
  });
  return `Deleted ${plural(done, 'message')}.`;
}

// ---------------------------------------------------------------- the view

class Selection {
  #ids = new Set();

  constructor(onChange) {
    this.onChange = onChange;
    this.all = h('input', {id: 'select-all', type: 'checkbox', onchange: () => {
      for (const row of this.rows)
        this.all.checked ? this.#ids.add(row.id) : this.#ids.delete(row.id);
      this.redraw();
      onChange();
    }});
    this.rows = [];
  }

  get ids() {
    return [...this.#ids];
  }

  // Messages that are gone are no longer selected.
  keep(rows) {
    this.rows = rows;
    const here = new Set(rows.map((row) => row.id));
    for (const id of this.#ids)
      if (!here.has(id))
        this.#ids.delete(id);
    this.all.checked = rows.length > 0 && this.#ids.size === rows.length;
    this.onChange();
  }

  cell(cell, row) {
    const box = cell.firstElementChild || h('input', {type: 'checkbox',
      'aria-label': `Select the message ${row.id}`, onchange: () => {
        box.checked ? this.#ids.add(row.id) : this.#ids.delete(row.id);
        this.onChange();
      }});
    if (!box.isConnected)
      cell.append(box);
    box.checked = this.#ids.has(row.id);
  }
}

function lettersSection(context) {
  const {project, queue} = context;
  const work = new Work();
  const acts = may('messages:redrive') || may('messages:delete_all');
  const tools = h('div', {hidden: !acts});
  const selection = new Selection(() => label());
  const list = new MessageList({id: 'letters', project, queue, select: acts && ((cell, row) =>
    selection.cell(cell, row)), onRows: (rows, data) => {
    context.total = data.total;
    selection.keep(rows);
    // An action emptied the group.
    if (context.acted && filtered() && rows.length === 0 && data.marker === null)
      context.choose(null);
  }, empty: 'No message matches.'});
  selection.redraw = () => list.table.draw();
  const target = h('input', {id: 'redrive-to', autocomplete: 'off', spellcheck: 'false',
    placeholder: 'their queue of origin'});
  const to = () => target.value.trim() ? {to: {queue: target.value.trim()}} : {};
  // One action at a time: all of them share the mark of being busy.
  const add = (id, kind, permission, run) => h('button', {id, type: 'button', class: kind,
    hidden: !may(permission), onclick: () => act(tools, async () => {
      const done = await run();
      context.acted = Boolean(done);
      list.refresh();
      context.refresh();
      return done;
    })});
  const filtered = () => Object.keys(context.filter).length > 0;
  const collected = (state) => filtered() ? collectIds(context, state, work) : null;
  const some = [add('redrive-selected', 'primary', 'messages:redrive', () =>
    redriveAll(context, selection.ids, to(), work)),
  add('delete-selected', 'danger', 'messages:delete_all', () =>
    deleteAll(context, selection.ids, 0, work))];
  const every = [add('redrive-all', '', 'messages:redrive', async () =>
    redriveAll(context, await collected('ready'), to(), work)),
  add('delete-all', 'danger', 'messages:delete_all', async () => {
    const whole = !filtered() && may('queues:purge');
    const ids = whole ? null : await collectIds(context, '', work);
    return deleteAll(context, ids, context.total, work);
  })];
  const label = () => {
    const n = selection.ids.length;
    some.forEach((button, i) => {
      button.disabled = n === 0;
      button.textContent = `${i ? 'Delete' : 'Put back'} selected (${count(n)})…`;
    });
    every.forEach((button, i) => {
      const which = filtered() ? 'all with this reason' : 'all';
      button.textContent = `${i ? 'Delete' : 'Put back'} ${which}…`;
    });
  };
  label();
  tools.append(h('p', {class: 'buttons'}, h('label', {class: 'check'},
    selection.all, 'Select all shown'), some[0], every[0],
  h('label', {class: 'check', hidden: !may('messages:redrive')}, 'to', target),
  h('span', {class: 'apart'}, some[1], every[1])));
  return {list, label, elements: [tools, work.element, list.element]};
}

export function deadLettersView({main, params: {project, queue}, query, setQuery}) {
  view(queue);
  const context = {project, queue, filter: {}, total: 0};
  const chosen = h('p', {class: 'note'});
  const problem = h('p', {class: 'error', role: 'alert'});
  const content = h('div', {class: 'sections', hidden: true});
  const fresh = freshness(main);
  main.append(crumbs(project, ' / ', h('a', {href: queueHref(project, queue)}, text(queue))),
    h('h1', {}, 'Dead letters in ', text(queue)),
    lead('Messages on which workers failed. See the reasons, fix the cause, then put the ' +
      'messages back to the queue from which they came, or delete them.'), problem, fresh.note, content);
  if (!may('messages:get_all')) {
    say(problem, 'You may not see messages (messages:get_all).');
    return {close() {}};
  }
  const letters = lettersSection(context);
  const choose = context.choose = (group) => {
    context.acted = false;
    context.filter = group ? {reason: group.reason ?? '',
      ...(group.origin && {origin: group.origin})} : {};
    chosen.replaceChildren(...(group ? ['With the reason: ', reasonNode(group.reason, linesText), ' ',
      h('button', {type: 'button', class: 'link', onclick: () => choose(null)}, 'Show all')]
      : ['All reasons. Choose a reason above to see only its messages.']));
    // A reload and Back keep the choice. An empty reason means: none given.
    setQuery(new URLSearchParams(context.filter));
    letters.list.load(context.filter);
    letters.label();
  };
  const groups = new Groups(project, queue, choose);
  context.refresh = () => {
    groups.live.close();
    if (groups.element.isConnected)
      groups.live.start();
  };
  content.append(section('groups-title', 'Why they failed', groups.element),
    section('letters-title', 'Messages', chosen, ...letters.elements));
  choose(query.has('reason') ? {reason: query.get('reason') || null, origin: query.get('origin')}
    : null);
  const follow = followRow(project, queue, {
    onRow: (row) => {
      fresh.fresh();
      content.hidden = !row;
      say(problem, row ? '' : 'There is no queue with this name. claimd creates it with ' +
        'the first dead letter.');
    },
    onError: (error) => {
      say(problem, fresh.failed(error) ? '' : errorText(error));
    }});
  return {close: () => [follow, groups, letters.list, fresh].forEach((part) => part.close())};
}
