// One queue: its last hour, the claims on it and its messages.
import {pause, postMessage, purge, release} from './actions.js';
import {getJson, later, Live, may, v2, view, withQuery} from './api.js';
import {Chart} from './charts.js';
import {act, actionButton, errorText, h, lead, say, section, text, update} from './dom.js';
import {age, bytes, clock, count, duration, NONE, plural} from './format.js';
import {MessageList, searchForm} from './messages.js';
import {
  claimTooOld, deadHref, messageHref, pausedText, readyTooOld, schedulesHref,
} from './queues.js';

const CLAIMS_SHOWN = 50;
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

const depth = {id: 'chart-depth', title: 'Messages, last hour', series: [
  {name: 'ready', title: 'ready', fill: true}, {name: 'claimed', title: 'claimed'},
  {name: 'delayed', title: 'delayed'}]};
const rates = {id: 'chart-rates', title: 'Per minute, last hour', series: [
  {name: 'posted', title: 'posted'}, {name: 'delivered', title: 'delivered'},
  {name: 'deleted', title: 'deleted'}, {name: 'dead_lettered', title: 'dead-lettered'}],
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
  const box = h('div', {class: 'columns', hidden: true},
    plots.map((plot) => h('section', {class: 'panel'}, plot.element)));
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
async function readLease(project, queue, claim, item) {
  const lease = await getJson(v2(queue, `/claims/${encodeURIComponent(claim.id)}`),
    {project, prefer: 'details'});
  item.ttl = lease.ttl;
  item.oldest = lease.messages[0];
}

function makeClaim({project, queue, search, refresh}, claim) {
  const item = {ttl: claim.ttl_left, left: claim.ttl_left, oldest: null};
  item.ends = h('span', {class: 'ends'});
  item.what = h('span', {class: 'what'});
  item.bar = h('progress');
  item.element = h('li', {'data-claim': claim.id},
    h('span', {class: 'who'}, h('span', {class: 'note'}, 'Client-ID '), claim.client
      ? text(claim.client) : 'unknown, because the server has restarted'), item.ends, item.what,
    h('span', {class: 'buttons'},
      h('button', {type: 'button', onclick: () => search('claim', claim.id)}, 'Messages'),
      may('claims:delete') ? actionButton(null, 'Release…', async () => {
        const done = await release(project, queue, item.claim);
        await refresh();
        return done;
      }, 'release danger') : null), h('label', {}, 'Time left', item.bar));
  return item;
}

function fillClaim(item, claim, {project, queue, attempts}) {
  // A renewal starts the lease anew.
  if (claim.ttl_left > item.left)
    item.ttl = claim.ttl_left;
  Object.assign(item, {claim, left: claim.ttl_left});
  item.bar.max = Math.max(item.ttl, claim.ttl_left, 1);
  item.bar.value = claim.ttl_left;
  item.bar.classList.toggle('soon', claim.ttl_left < item.bar.max / 5);
  update(item.ends, `ends at ${clock(Date.now() + claim.ttl_left * 1000)}, in ` +
    duration(claim.ttl_left));
  const attempt = item.oldest?.details?.delivery_count;
  update(item.what, `claim number ${claim.number}, `,
    attempt ? `attempt ${attempt}${attempts() ? ` of ${attempts()}` : ''}, ` : '',
    `made ${duration(claim.age)} ago, holds `,
    item.oldest ? h('a', {href: messageHref(project, queue, item.oldest.id)},
      plural(claim.messages, 'message')) : plural(claim.messages, 'message'));
}

function claimsList(context) {
  const {project, queue} = context;
  const list = h('ul', {id: 'claims'});
  const note = h('p', {class: 'note'}, 'Loading');
  const items = new Map();
  const add = (claim) => {
    const item = makeClaim(context, claim);
    items.set(claim.id, item);
    list.append(item.element);
    later(() => readLease(project, queue, claim, item), () => item.element.isConnected);
  };
  const live = new Live(withQuery(view(queue, '/claims'), {limit: CLAIMS_SHOWN}), {project,
    onError: (error) => update(note, error.status === 404 ? '' : errorText(error)),
    onData({claims, links}) {
      for (const claim of claims) {
        if (!items.has(claim.id))
          add(claim);
        fillClaim(items.get(claim.id), claim, context);
      }
      const alive = new Set(claims.map((claim) => claim.id));
      for (const [id, item] of items)
        if (!alive.has(id)) {
          item.element.remove();
          items.delete(id);
        }
      update(note, claims.length === 0 ? 'No worker holds a message of this queue.'
        : links.length ? `The ${CLAIMS_SHOWN} oldest claims. There are more.` : '');
    }});
  live.start();
  return {element: h('div', {class: 'panel'}, list, note), refresh: () => live.move(),
    close: () => live.close()};
}

// ---------------------------------------------------------------- the view

function summary(row, metadata) {
  const tile = (label, value, warn) => h('div', {class: warn ? 'tile warn' : 'tile'},
    h('dt', {}, label), h('dd', {}, value));
  return [tile('Ready', count(row.ready)),
    tile('Oldest waits', age(row.oldest_ready_age), readyTooOld(row)),
    tile('Claimed', count(row.claimed)),
    tile('Oldest claim', age(row.oldest_claim_age), claimTooOld(row)),
    tile('Delayed', count(row.delayed)), tile('Workers waiting', count(row.waiters)),
    row.dead_letters ? tile('Dead letters here', count(row.dead_letters)) : null];
}

function notices(project, queue, row, metadata) {
  const out = [];
  const note = (bad, ...content) =>
    out.push(h('p', {class: bad ? 'notice bad' : 'notice'}, ...content));
  if (!row) {
    note(true, 'There is no queue with this name in this project. A queue exists from its first ' +
      'message on.');
    return out;
  }
  if (row.paused?.claims)
    note(true, 'Claims are paused. Workers get no messages until an operator resumes the queue.');
  if (row.paused?.posts)
    note(true, 'Posts are paused. Producers are refused (503) until an operator resumes posts.');
  if (row.dead_letters)
    note(true, plural(row.dead_letters, 'dead letter'), ' in this queue. ',
      h('a', {href: deadHref(project, queue)}, 'See why they failed, and put them back'), '.');
  if (row.unloaded)
    note(false, `Only on the disk: ${plural(row.unloaded, 'message')} with ` +
      `${bytes(row.unloaded_bytes)}. claimd reads them before workers need them.`);
  if (metadata.target && metadata.attempts)
    note(false, `After ${plural(metadata.attempts, 'attempt')}, a message moves to `,
      h('a', {href: deadHref(project, metadata.target)}, text(metadata.target)), '.');
  return out;
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
  const post = button('action-post', 'Post a message…', 'primary',
    async () => postMessage(project, queue, refresh));
  const stop = button('action-pause', 'Pause…', '',
    () => pause(project, queue, state.row?.paused || {}));
  const empty = button('action-purge', 'Purge…', 'danger',
    () => purge(project, queue, state.row));
  const dead = h('a', {id: 'action-dead-letters', class: 'button'}, 'Dead letters');
  const schedules = h('a', {id: 'action-schedules', class: 'button',
    href: schedulesHref(project, queue), hidden: !may('schedules:get')}, 'Schedules');
  const show = (row, target) => {
    post.hidden = !may('messages:create');
    stop.hidden = !row || !may('queues:pause');
    stop.textContent = pausedText(row?.paused) ? 'Resume…' : 'Pause…';
    empty.hidden = !row || !may('queues:purge');
    dead.hidden = !target;
    if (target)
      dead.href = deadHref(project, target);
  };
  show(null, null);
  box.append(post, stop, empty, dead, schedules);
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
    const list = new MessageList({id: 'messages', project, queue, empty: 'No message matches. If ' +
      'the queue is empty, producers post nothing or workers keep up.'});
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
  const problem = h('p', {class: 'error', role: 'alert'});
  const actions = actionsFor({project, queue}, state, refresh);
  const plots = charts(project, queue);
  const sections = sectionsFor({project, queue, refresh}, metadata);

  function refresh() {
    sections.refresh();
    return follow.refresh();
  }

  function showRow(row) {
    if (!tiles.isConnected)
      return;
    state.row = row;
    say(problem, '');
    update(tiles, ...(row ? summary(row, metadata) : []));
    update(notes, ...notices(project, queue, row, metadata));
    actions.show(row, row?.dead_letters ? queue : metadata.target || row?.dead_letter_queue);
    plots.follow(row);
  }

  main.append(crumbs(project), h('h1', {id: 'queue-title'}, text(queue)),
    lead('Workers claim the oldest ready message first. A claim is a lease. If it ends before ' +
      'the worker deletes its messages, they become ready again.'),
    tiles, notes, problem, actions.element, ...sections.claims, ...plots.elements,
    ...sections.messages);
  const follow = followRow(project, queue, {onRow: showRow, onError: (error) => {
    say(problem, errorText(error));
  }});
  getJson(path, {project}).then((document) => {
    metadata.target = document._dead_letter_queue;
    metadata.attempts = document._max_claim_count;
  }).catch(() => {});
  return {close: () => [follow, plots, ...sections.parts].forEach((part) => part.close())};
}
