// One queue: its last hour, the claims on it and its messages.
import {pause, postMessage, purge, release} from './actions.js';
import {getJson, later, Live, may, v2, view, withQuery} from './api.js';
import {Chart, rangeButtons} from './charts.js';
import {postCommand, suggestion, workCommand} from './command.js';
import {
  act, actionButton, errorText, freshness, h, menu, say, section, Table, text, update, workerNode,
} from './dom.js';
import {
  age, bytes, clock, count, duration, holderName, NONE, perMinute, plural, visible,
} from './format.js';
import {MessageList, searchForm} from './messages.js';
import {
  claimTooOld, deadHref, has, messageHref, number, pausedText, readyTooOld, schedulesHref,
} from './queues.js';

// Claims that are shown, and more of them with each click.
const CLAIMS_SHOWN = [10, 50, 200, 1000];
const ROWS = 100;
const SNAPSHOT_MS = 1500;

export function crumbs(project, ...more) {
  return h('p', {class: 'crumbs'}, h('a', {href: '#/queues'}, 'Queues'), ' / ',
    h('a', {href: `#/queues?project=${encodeURIComponent(project)}`}, text(project)), ...more);
}

// Follows the row of one queue. Others whose names contain this name may stand before it.
export function followRow(project, queue, {onRow, onError}) {
  let offset = 0;
  const path = () => withQuery('../queues', {sort: 'name', project, q: queue, offset, limit: ROWS});
  const find = (data) => data.queues.find((r) => r.name === queue && r.project === project);
  let freshUntil = 0;
  const live = new Live(path(), {project, onError, onData(data) {
    if (Date.now() < freshUntil)
      return;
    const row = find(data);
    if (row || data.matching <= ROWS) {
      onRow(row || null);
      return;
    }
    offset = offset + ROWS < data.matching ? offset + ROWS : 0;
    if (offset === 0)
      onRow(null);
    live.move(path());
  }});
  // After an action. Rows by offset are up to a second old, so they may be from before it.
  live.refresh = async () => {
    const fresh = withQuery('../queues', {sort: 'name', project, q: queue, limit: ROWS});
    const row = find(await getJson(fresh, {project}).catch(() => ({queues: []})));
    if (!row)
      return;
    freshUntil = Date.now() + SNAPSHOT_MS;
    onRow(row);
  };
  return live.start();
}

// ---------------------------------------------------------------- charts

const depth = {id: 'chart-depth', title: 'Messages', series: [
  {name: 'ready', title: 'ready', fill: true}, {name: 'claimed', title: 'claimed'},
  {name: 'delayed', title: 'delayed'}]};
const rates = {id: 'chart-rates', title: 'Per minute', series: [
  {name: 'posted', title: 'posted'}, {name: 'delivered', title: 'delivered'},
  {name: 'deleted', title: 'deleted'}, {name: 'requeued', title: 'again'},
  {name: 'dead_lettered', title: 'dead'}],
format: (n) => n === null || n === undefined ? NONE : count(Math.round(n))};

// Sums over a minute, so that single messages do not make spikes.
function minuteSums(samples, name, interval) {
  const width = Math.round(60 / interval);
  let sum = 0;
  return samples.map((sample, i) => {
    sum += sample[name] - (i >= width ? samples[i - width][name] : 0);
    return sum;
  });
}

function charts(project, queue) {
  const plots = [new Chart(depth), new Chart(rates)];
  const none = h('p', {class: 'note', hidden: true}, 'The server keeps no history of this queue, ' +
    'or has none yet. The option metrics_queues sets for how many queues it does.');
  const box = h('div', {class: 'charts', hidden: true}, rangeButtons(plots),
    h('div', {class: 'columns'},
      plots.map((plot) => h('section', {class: 'panel'}, plot.element))));
  const show = ({samples, interval}) => {
    none.hidden = samples?.length > 0;
    box.hidden = !none.hidden;
    if (box.hidden)
      return;
    const times = samples.map((s) => Date.parse(s.at) / 1000);
    plots[0].set([times, ...depth.series.map((s) => samples.map((x) => x[s.name]))]);
    plots[1].set([times, ...rates.series.map((s) => minuteSums(samples, s.name, interval))]);
  };
  const live = new Live(view(queue, '/history'), {project, every: 10000, onData: show});
  let started = false;
  // A queue without rates has no history.
  const follow = (row) => {
    if (row?.rates && !started)
      live.start();
    started ||= Boolean(row?.rates);
    none.hidden = !row || started;
  };
  return {elements: [box, none], follow, close: () => [live, ...plots].forEach((x) => x.close())};
}

// ---------------------------------------------------------------- claims

// What the list of claims does not say: the whole time of the lease, and the delivery count.
async function readLease(project, queue, claim, lease) {
  const document = await getJson(v2(queue, `/claims/${encodeURIComponent(claim.id)}`),
    {project, prefer: 'details'});
  lease.ttl = document.ttl;
  lease.oldest = document.messages[0];
}

function workerCell(cell, {claim}) {
  const {worker, address, client, number: token} = claim;
  const title = [`Claim number ${token}`, client && `Client-ID ${visible(client)}`,
    address && `address ${visible(address)}`].filter(Boolean).join(', ');
  if (cell.title === title)
    return;
  const name = holderName(claim);
  cell.title = title;
  cell.replaceChildren(name ? text(name) : 'unknown: claimd has restarted',
    worker && address ? h('span', {class: 'note'}, ' ', text(address)) : '');
}

function leftCell(cell, {claim, lease}) {
  const most = Math.max(lease.ttl, claim.ttl_left, 1);
  if (!cell.bar) {
    cell.bar = h('progress', {'aria-label': 'Time left'});
    cell.time = h('span');
    cell.append(h('span', {class: 'left'}, cell.bar, cell.time));
  }
  cell.bar.max = most;
  cell.bar.value = claim.ttl_left;
  cell.bar.classList.toggle('soon', claim.ttl_left < most / 5);
  say(cell.time, age(claim.ttl_left));
  cell.title = `Ends at ${clock(Date.now() + claim.ttl_left * 1000)}, unless the worker renews it`;
}

function claimColumns(context) {
  const {project, queue, attempts, refresh} = context;
  const releaseButton = (row) => actionButton(null, 'Release…', async () => {
    const done = await release(project, queue, row.lease.claim);
    await refresh();
    return done;
  }, 'release danger');
  const attempt = ({lease}) => {
    const n = lease.oldest?.details?.delivery_count;
    return n ? `${n}${attempts() ? ` of ${attempts()}` : ''}` : NONE;
  };
  return [
    {name: 'worker', title: 'Worker', header: true, update: workerCell},
    {name: 'held', title: 'Held for', cls: 'number medium', text: ({claim}) => age(claim.age),
      hint: 'Time since the claim was made'},
    {name: 'left', title: 'Ends in', update: leftCell,
      hint: 'Then its messages become ready again, unless the worker renews the claim'},
    {name: 'attempt', title: 'Attempt', cls: 'number medium', text: attempt},
    {name: 'holds', title: 'Messages', cls: 'number', update: (cell, {claim, lease}) =>
      update(cell, lease.oldest ? h('a', {href: messageHref(project, queue, lease.oldest.id)},
        count(claim.messages)) : count(claim.messages))},
    {name: 'actions', title: 'Actions', node: (row) => [
      h('button', {type: 'button', class: 'medium', onclick: () => context.search('claim', row.claim.id)},
        'Messages'), may('claims:delete') ? releaseButton(row) : '']},
  ];
}

function claimsList(context) {
  const {project, queue} = context;
  const leases = new Map();   // by the id of the claim
  let shown = 0;
  const path = () => withQuery(view(queue, '/claims'), {limit: CLAIMS_SHOWN[shown]});
  const table = new Table({id: 'claims', label: 'Claims', columns: claimColumns(context),
    key: ({claim}) => claim.id, attributes: ({claim}) => ({'data-claim': claim.id}),
    empty: 'No worker holds a message of this queue.'});
  const problem = h('p', {class: 'error', role: 'alert'});
  const more = h('button', {id: 'claims-more', type: 'button', hidden: true, onclick: () => {
    shown++;
    live.move(path());
  }}, 'Show more');
  const rowOf = (claim) => {
    let lease = leases.get(claim.id);
    if (!lease) {
      lease = {ttl: claim.ttl_left, left: claim.ttl_left, oldest: null};
      leases.set(claim.id, lease);
      later(() => readLease(project, queue, claim, lease), () => leases.has(claim.id));
    }
    // A renewal starts the lease anew.
    if (claim.ttl_left > lease.left)
      lease.ttl = claim.ttl_left;
    Object.assign(lease, {claim, left: claim.ttl_left});
    return {claim, lease};
  };
  const live = new Live(path(), {project,
    onError: (error) => say(problem, error.status === 404 ? '' : errorText(error)),
    onData({claims, links}) {
      say(problem, '');
      const alive = new Set(claims.map((claim) => claim.id));
      for (const id of leases.keys())
        if (!alive.has(id))
          leases.delete(id);
      table.setRows(claims.map(rowOf));
      more.hidden = !links.length || shown === CLAIMS_SHOWN.length - 1;
    }});
  live.start();
  return {element: h('div', {}, problem, table.element, h('p', {class: 'buttons'}, more)),
    refresh: () => live.move(), close: () => [live, table].forEach((x) => x.close())};
}

// ---------------------------------------------------------------- the view

function summary(row) {
  const tile = (label, value, warn) => h('div', {class: warn ? 'tile warn' : 'tile'},
    h('dt', {}, label), h('dd', {}, value));
  const alone = has(row, 'no_worker');
  return [tile('Ready', number(row.ready), alone),
    tile('Oldest waits', age(row.oldest_ready_age), readyTooOld(row)),
    tile('Workers waiting', number(row.waiters), alone),
    tile('Claimed', number(row.claimed)),
    tile('Oldest claim', age(row.oldest_claim_age), claimTooOld(row)),
    tile('Delayed', number(row.delayed)),
    tile('Again / min', perMinute(row.rates?.requeued), has(row, 'returned')),
    row.dead_letters ? tile('Dead letters here', number(row.dead_letters), true) : null];
}

// Asks for the last pause whenever what is paused changes, and calls `answered` then.
function lastPauseOf(project, queue, answered) {
  let asked = '';
  const found = {last: null, follow(row) {
    const what = pausedText(row?.paused);
    if (what === asked)
      return;
    asked = what;
    found.last = null;
    if (what && may('claims:get'))
      getJson(view(queue, '/pause'), {project}).then((state) => {
        if (what === asked)
          found.last = state.last_pause;
        answered();
      }).catch(() => {});
  }};
  return found;
}

function lastPauseText(last) {
  return last && [` (last pause: ${clock(Date.parse(last.at))}, by `, workerNode(last) || 'a client', ')'];
}

// Amber: an operator should act. Grey: how the queue is set up. Green: all is well.
function notices(project, queue, row, metadata, last) {
  const out = [];
  const note = (kind, ...content) => out.push(h('p', {class: `notice ${kind}`}, ...content));
  if (!row) {
    note('bad', 'There is no queue with this name in this project. A queue exists from its first ' +
      'message on.');
    return out;
  }
  if (row.paused?.claims)
    note('bad', 'Claims are paused', lastPauseText(last),
      '. Workers get no messages until an operator resumes the queue.');
  if (row.paused?.posts)
    note('bad', 'Posts are paused', lastPauseText(last),
      '. Producers are refused (503) until an operator resumes posts.');
  if (has(row, 'no_worker'))
    note('bad', `No worker takes the ${plural(row.ready, 'ready message')}. None waits for ` +
      'messages, holds a claim, or took a message within the last minute.');
  else if (readyTooOld(row))
    note('bad', 'Workers are too slow, or too few. The oldest ready message was posted ' +
      `${duration(row.oldest_ready_age)} ago.`);
  if (claimTooOld(row))
    note('bad', `The oldest claim was made ${duration(row.oldest_claim_age)} ago. Its worker may ` +
      'hang, and still renew the claim.');
  if (has(row, 'returned'))
    note('bad', `${perMinute(row.rates.requeued)} messages a minute become ready again. Workers ` +
      'fail on them, or need longer than their claims last.');
  if (row.dead_letters)
    note('bad', plural(row.dead_letters, 'dead letter'), ' in this queue. ',
      h('a', {href: deadHref(project, queue)}, 'See why they failed, and put them back'), '.');
  if (!row.notices.length)
    note('good', row.ready || row.claimed ? 'All is well: workers take the messages.'
      : 'All is well: no message waits.');
  if (row.unloaded)
    note('fact', `Only on the disk: ${plural(row.unloaded, 'message')} with ` +
      `${bytes(row.unloaded_bytes)}. claimd reads them before workers need them.`);
  if (metadata.target && metadata.attempts)
    note('fact', `After ${plural(metadata.attempts, 'attempt')}, a message moves to `,
      h('a', {href: deadHref(project, metadata.target)}, text(metadata.target)), '.');
  return out;
}

function nextCommand(project, queue, row) {
  if (!row)
    return suggestion('Post its first message:', postCommand(project, queue));
  return has(row, 'no_worker')
    ? suggestion('Start a worker:', workCommand(project, queue)) : '';
}

// The buttons of the queue. `state` has its row, `refresh` asks for it again.
function actionsFor({project, queue}, state, refresh) {
  const box = h('p', {class: 'buttons'});
  // One action at a time, and none before the new state is there.
  const button = (id, label, kind, work) => h('button', {id, type: 'button', class: kind,
    onclick: () => act(box, async () => {
      const done = await work();
      await refresh();
      return done;
    })}, label);
  const post = button('action-post', 'Post a message…', '',
    async () => postMessage(project, queue, refresh));
  const stop = button('action-pause', 'Pause…', '',
    () => pause(project, queue, state.row?.paused || {}));
  const empty = button('action-purge', 'Purge…', 'danger',
    () => purge(project, queue, state.row));
  const rest = menu('action-more', 'More', empty);
  const dead = h('a', {id: 'action-dead-letters', class: 'button'}, 'Dead letters');
  const schedules = h('a', {id: 'action-schedules', class: 'button',
    href: schedulesHref(project, queue), hidden: !may('schedules:get')}, 'Schedules');
  const show = (row, target) => {
    post.hidden = !may('messages:create');
    stop.hidden = !row || !may('queues:pause');
    const paused = Boolean(pausedText(row?.paused));
    stop.textContent = paused ? 'Resume…' : 'Pause…';
    // What helps most stands out. A further message does not help a queue that is stuck.
    stop.classList.toggle('primary', paused);
    post.classList.toggle('primary', !row?.notices.length);
    rest.hidden = !row || !may('queues:purge');
    dead.hidden = !target;
    if (target)
      dead.href = deadHref(project, target);
  };
  show(null, null);
  box.append(post, stop, dead, schedules, rest);
  return {element: box, show};
}

// The sections that the caller may see.
function sectionsFor(context, metadata) {
  const {project, queue} = context;
  const parts = [];
  const out = {parts, claims: [], messages: [], refresh: () => parts.forEach((p) => p.refresh())};
  const claimContext = {...context, attempts: () => metadata.target && metadata.attempts,
    search() {}};
  if (may('claims:get')) {
    const claims = claimsList(claimContext);
    parts.push(claims);
    out.claims.push(section('claims-title', 'Claims of workers, oldest first', claims.element));
  }
  if (may('messages:get_all')) {
    const list = new MessageList({id: 'messages', project, queue,
      empty: suggestion('No message matches. In an empty queue, workers keep up or producers ' +
        'post nothing. Post one:', postCommand(project, queue))});
    const search = searchForm(list);
    claimContext.search = search.set;
    parts.push(list);
    out.messages.push(section('messages-title', 'Messages, oldest first', search.form,
      list.element));
  }
  return out;
}

export function queueView({main, params: {project, queue}}) {
  const path = v2(queue);
  const metadata = {target: null, attempts: null};
  const state = {row: null};
  const tiles = h('dl', {class: 'tiles'});
  const notes = h('div');
  const next = h('div');
  const fresh = freshness(main);
  const problem = h('p', {class: 'error', role: 'alert'});
  const actions = actionsFor({project, queue}, state, refresh);
  const plots = charts(project, queue);
  const sections = sectionsFor({project, queue, refresh}, metadata);

  const lastPause = lastPauseOf(project, queue, showNotices);

  function refresh() {
    sections.refresh();
    return follow.refresh();
  }

  function showNotices() {
    update(notes, ...notices(project, queue, state.row, metadata, lastPause.last));
  }

  function showRow(row) {
    if (!tiles.isConnected)
      return;
    state.row = row;
    say(problem, '');
    fresh.fresh();
    update(tiles, ...(row ? summary(row) : []));
    lastPause.follow(row);
    showNotices();
    update(next, nextCommand(project, queue, row));
    actions.show(row, row?.dead_letters ? queue : metadata.target || row?.dead_letter_queue);
    plots.follow(row);
  }

  main.append(crumbs(project),
    h('div', {class: 'head'}, h('h1', {id: 'queue-title'}, text(queue)), actions.element),
    fresh.note, tiles, notes, next, problem, ...plots.elements, ...sections.claims,
    ...sections.messages);
  const follow = followRow(project, queue, {onRow: showRow, onError: (error) => {
    say(problem, fresh.failed(error) ? '' : errorText(error));
  }});
  getJson(path, {project}).then((document) => {
    metadata.target = document._dead_letter_queue;
    metadata.attempts = document._max_claim_count;
  }).catch(() => {});
  return {close: () =>
    [follow, plots, fresh, ...sections.parts].forEach((part) => part.close())};
}
