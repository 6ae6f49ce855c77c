// One message: its state, its past, what happens next, and its body.
import {deleteOne, redrive, release} from './actions.js';
import {ApiError, caller, fetchResponse, Live, may, v2, view} from './api.js';
import {
  actionButton, confirm, errorText, facts, freshness, h, lead, linesText, say, section, text, update,
  workerNode,
} from './dom.js';
import {bytes, clock, count, duration, indentJson, memberText, plural} from './format.js';
import {crumbs} from './queue.js';
import {messageHref, queueHref} from './queues.js';

const PIECE = 64 * 1024;
const BYTES_PER_LINE = 16;

const at = (time) => clock(Date.parse(time));

export function when(time) {
  const seconds = (Date.parse(time) - Date.now() - caller.clockBehind) / 1000;
  return seconds >= 0 ? `${at(time)}, in ${duration(seconds)}` : `${at(time)}`;
}

// ---------------------------------------------------------------- body

function hexLine(data, from) {
  const piece = data.subarray(from, from + BYTES_PER_LINE);
  const hex = [...piece].map((b) => b.toString(16).padStart(2, '0')).join(' ');
  const plain = [...piece].map((b) => b >= 32 && b < 127 ? String.fromCharCode(b) : '.').join('');
  return `${from.toString(16).padStart(6, '0')}  ${hex.padEnd(3 * BYTES_PER_LINE)} ${plain}\n`;
}

// Shows a long text in pieces. `render(from, to)` makes the nodes of one piece.
function inPieces(box, length, render) {
  const more = h('button', {type: 'button'}, 'Show more');
  let from = 0;
  const show = () => {
    const to = Math.min(length, from + PIECE);
    box.append(render(from, to));
    from = to;
    more.hidden = from >= length;
  };
  more.addEventListener('click', show);
  show();
  return more;
}

function textBody(body) {
  const shown = indentJson(body) ?? body;
  const box = h('pre', {tabindex: 0, 'aria-label': 'Body as text'});
  const more = inPieces(box, shown.length, (from, to) => text(shown.slice(from, to), '\n'));
  return h('div', {id: 'message-body'}, box, more);
}

function hexBody(body) {
  const data = new TextEncoder().encode(body);
  const box = h('pre', {class: 'hex', tabindex: 0, 'aria-label': 'Body as bytes'});
  const more = inPieces(box, data.length, (from, to) => {
    let lines = '';
    for (let i = from; i < to; i += BYTES_PER_LINE)
      lines += hexLine(data, i);
    return document.createTextNode(lines);
  });
  return h('div', {id: 'message-bytes', hidden: true}, box, more);
}

export function bodySection(body) {
  const panels = [textBody(body), hexBody(body)];
  const names = [['show-text', 'Text'], ['show-bytes', 'Bytes']];
  const buttons = names.map(([id, label], i) =>
    h('button', {id, type: 'button', onclick: () => show(i)}, label));
  const show = (chosen) => panels.forEach((panel, i) => {
    panel.hidden = i !== chosen;
    buttons[i].setAttribute('aria-pressed', i === chosen);
  });
  show(0);
  const size = bytes(new TextEncoder().encode(body).length);
  return [h('p', {class: 'buttons'}, buttons, h('span', {class: 'note'}, size)), ...panels];
}

// ---------------------------------------------------------------- state and past

const localTimes = (sentences) => sentences.replace(/\b\d{4}-\d\d-\d\dT[\d:]+Z/g, at);

function holderOf(m) {
  if (!m.claim)
    return null;
  return ['Held by', workerNode(m.claim) || 'a client unknown since a restart',
    h('span', {title: `Claim number ${m.claim.number}`}, `, until ${when(m.claim.ends_at)}`)];
}

// Of a dead letter: those that led here, which older versions did not keep, and those since then.
function attempts(m) {
  const here = count(m.delivery_count) + (m.max_claim_count ? ` of ${count(m.max_claim_count)}` : '');
  if (!m.dead_lettered_at)
    return [['Attempts', here]];
  return [m.attempts === undefined ? null : ['Attempts before it failed', count(m.attempts)],
    m.delivery_count ? ['Attempts since it came here', here] : null];
}

export function stateFacts(m) {
  return [['State', h('span', {id: 'message-state'}, m.state),
    m.delayed_until ? ` until ${when(m.delayed_until)}` : ''],
  holderOf(m), ...attempts(m),
  ['Posted', at(m.created_at)], ['Expires', when(m.expires_at)],
  m.unique ? ['Unique key', text(m.unique), m.unique_until ? ', until it is claimed' : ''] : null];
}

// Why the message is a dead letter. Older versions did not keep it.
const causes = {worker: () => '.',
  attempts: (n) => ` because it was delivered ${n}, as often as its queue allows.`,
  expired: (n) => ` because it was delivered ${n}, and the last claim expired.`};

function lastWorker(m) {
  return workerNode({worker: m.last_worker, address: m.last_address, client: m.last_client});
}

function causeOf(m) {
  const worker = lastWorker(m);
  const text = causes[m.cause]?.(m.attempts ? plural(m.attempts, 'time') : 'too often') || '.';
  return m.last_released_at || !worker ? [text] : [text, ' Its worker was ', worker, '.'];
}

function lastFailure(m) {
  const worker = lastWorker(m);
  const last = m.last_released_at === m.dead_lettered_at;
  const end = last && m.cause === 'worker' ? 'dead-lettered it'
    : last && !m.cause ? 'failed on it' : 'gave it back';
  return [worker ? ['A worker (', worker, ')'] : 'A worker', ` ${end}. Reason: `,
    m.last_reason ? h('strong', {class: 'reason'}, linesText(m.last_reason)) : 'none given.'];
}

export function events(project, m) {
  const list = [[m.created_at, 'Posted.']];
  if (m.last_released_at)
    list.push([m.last_released_at, ...lastFailure(m)]);
  if (m.dead_lettered_at)
    list.push([m.dead_lettered_at, 'Moved here as a dead letter',
      ...(m.origin_queue ? [' from ', h('a', {href: queueHref(project, m.origin_queue)},
        text(m.origin_queue))] : []),
      ...causeOf(m)]);
  list.sort((a, b) => Date.parse(a[0]) - Date.parse(b[0]));
  const past = list.map(([time, ...what]) =>
    h('li', {}, h('time', {datetime: time}, at(time)), ' ', ...what));
  if (m.delivery_count)
    past.push(h('li', {}, `Delivered ${plural(m.delivery_count, 'time')} so far` +
      (m.claim ? ', the last time to the client that holds it.' : '.')));
  return past;
}

// ---------------------------------------------------------------- the view

async function putBack(project, queue, id) {
  const dry = await redrive(project, queue, {ids: [id], dry_run: true});
  const [target] = Object.keys(dry.by_target);
  if (!target)
    throw new ApiError(0, 'Not possible', dry.without_origin ? 'The message has no queue of ' +
      'origin. Name a queue in the view of the dead letters.' : dry.key_held
      ? 'A message of its queue has its key.' : 'It is no ready dead letter.');
  const yes = await confirm({title: 'Put the message back (redrive)?', ok: 'Put back 1 message',
    danger: false, content: [h('p', {}, 'This moves the message ', h('strong', {}, id), ' from ',
      text(queue), ' to ', h('strong', {}, text(target)), '. Its age and attempts count from 0.')]});
  if (!yes)
    return '';
  const {moved} = await redrive(project, queue, {ids: [id]});
  if (moved)
    location.hash = messageHref(project, target, id);
  return moved ? `Moved 1 message to ${target}.` : 'Not moved. The message is no longer ready.';
}

function actionsFor({project, queue, id}, state) {
  const remove = actionButton('action-delete', 'Delete…', async () => {
    if (!await deleteOne(project, queue, id, state.message?.claim))
      return '';
    location.hash = queueHref(project, queue);
    return 'Deleted 1 message.';
  }, 'danger');
  const free = actionButton('action-release', 'Release its claim…', async () => {
    const done = await release(project, queue, state.message.claim);
    state.live.move();
    return done;
  });
  const back = actionButton('action-redrive', 'Put back…', () => putBack(project, queue, id),
    'primary');
  return {elements: [back, free, remove], show(m) {
    remove.hidden = !m || !may('messages:delete_all');
    free.hidden = !m?.claim || !may('claims:delete');
    back.hidden = !m?.dead_lettered_at || m.state !== 'ready' || !may('messages:redrive');
  }};
}

export function messageView({main, params: {project, queue, id}}) {
  if (!/^[0-9a-f]{24}$/i.test(id))
    throw new ApiError(0, 'Not found', 'This is no id of a message.');
  const state = {message: null, live: null};
  const known = h('div', {class: 'panel'});
  const next = h('p', {id: 'message-next', class: 'notice'});
  const past = h('ol', {id: 'message-history', class: 'timeline'});
  const problem = h('p', {class: 'error', role: 'alert'});
  const actions = actionsFor({project, queue, id}, state);
  const body = h('div', {}, h('p', {class: 'note'}, 'Loading'));
  const content = h('div', {class: 'sections', hidden: true});
  const fresh = freshness(main);

  function show(m) {
    state.message = m;
    fresh.fresh();
    next.hidden = content.hidden = false;
    say(problem, '');
    update(known, facts(stateFacts(m)));
    update(next, 'Next: ', text(localTimes(m.next.text)), m.dead_lettered_at
      ? ' It is in a dead-letter queue. Put it back to have it processed again.' : '');
    update(past, ...events(project, m));
    actions.show(m);
  }

  function fail(error) {
    if (error.status === 404) {
      say(problem, 'This message is gone. It was deleted, it expired, or it moved to ' +
        'another queue.');
      next.replaceChildren(h('a', {href: queueHref(project, queue)}, 'See the queue'));
      next.hidden = false;
      actions.show(null);
    } else {
      say(problem, fresh.failed(error) ? '' : errorText(error));
    }
  }

  async function readBody() {
    try {
      const response = await fetchResponse('GET', v2(queue, `/messages/${id}`), {project});
      const found = memberText(await response.text(), 'body');
      body.replaceChildren(...bodySection(found ?? ''));
    } catch (error) {
      body.replaceChildren(h('p', {class: 'note'}, error.status === 404 ? 'The body is gone, too.'
        : errorText(error)));
    }
  }

  actions.show(null);
  next.hidden = true;
  content.append(h('div', {class: 'columns'}, section('state-title', 'State', known),
    section('past-title', 'What happened', past)), section('body-title', 'Body', body));
  main.append(crumbs(project, ' / ', h('a', {href: queueHref(project, queue)}, text(queue))),
    h('h1', {id: 'message-title'}, 'Message ', h('span', {class: 'id'}, id)),
    lead('Where the message stands, what happened to it, and what happens next.'),
    problem, fresh.note, next, h('p', {class: 'buttons'}, actions.elements), content);
  state.live = new Live(view(queue, `/messages/${id}`),
    {project, onData: show, onError: fail}).start();
  if (may('messages:get'))
    readBody();
  else
    body.replaceChildren(h('p', {class: 'note'}, 'You may not see bodies (messages:get).'));
  return {close: () => [state.live, fresh].forEach((part) => part.close())};
}
