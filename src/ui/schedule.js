// One schedule: when it is due, what it posts, and how that went.
import {deleteSchedule, pauseSchedule} from './actions.js';
import {Live, may, schedulePath, withQuery} from './api.js';
import {actionButton, errorText, facts, h, lead, say, section, text, update} from './dom.js';
import {count, memberText} from './format.js';
import {bodySection, when} from './message.js';
import {crumbs} from './queue.js';
import {queueHref, schedulesHref} from './queues.js';
import {badge, interval, lastMessage, recurrence} from './schedules.js';

const EVERY_MS = 2000;
const NEXT_SHOWN = 10;

const missed = {last: 'posts for the latest one', all: 'posts for each', none: 'posts for none'};
const overlap = {post: 'posts another one', skip: 'skips the due time'};

function stateFacts(project, row) {
  return [['When', recurrence(row), row.timezone ? [', time zone ', text(row.timezone)] : '',
    row.paused ? [' ', badge(row)] : ''],
  row.next.length > 0 && ['Next', when(row.next[0])],
  ['Last', row.last ? [`due ${when(row.last.due)}, posted ${when(row.last.posted_at)}, `,
    lastMessage(project, row)] : 'none yet'],
  ['Counts', `${count(row.posted)} posted, ${count(row.missed_count)} missed, ` +
    `${count(row.skipped_count)} skipped, ${count(row.refused_count)} refused`],
  ['If due times are missed', `claimd ${missed[row.missed] ?? row.missed}`],
  ['If a message is still there', `claimd ${overlap[row.overlap] ?? row.overlap}`],
  row.message.ttl !== undefined && ['Lifetime of messages', interval(row.message.ttl)],
  row.message.delay !== undefined && ['Delay of messages', interval(row.message.delay)]];
}

function actionsFor({project}, state) {
  const stop = actionButton('action-pause', 'Pause…', async () => {
    const done = await pauseSchedule(project, state.row);
    state.live.move();
    return done;
  });
  const remove = actionButton('action-delete', 'Delete…', async () => {
    const done = await deleteSchedule(project, state.row);
    if (done)
      location.hash = schedulesHref(project, state.row.queue);
    return done;
  }, 'danger');
  return {elements: [stop, remove], show(row) {
    stop.hidden = remove.hidden = !row || !may('schedules:set');
    say(stop, row?.paused ? 'Resume…' : 'Pause…');
  }};
}

async function readSchedule(response) {
  const source = await response.text();
  return {row: JSON.parse(source), body: memberText(memberText(source, 'message') ?? '', 'body')};
}

export function scheduleView({main, params: {project, queue, name}}) {
  const state = {row: null, body: null, live: null};
  const problem = h('p', {class: 'error', role: 'alert'});
  const cannot = h('p', {class: 'notice bad', hidden: true});
  const known = h('div', {class: 'panel'});
  const next = h('ol', {id: 'schedule-next', class: 'timeline'});
  const body = h('div', {}, h('p', {class: 'note'}, 'Loading'));
  const actions = actionsFor({project}, state);

  function show({row, body: source}) {
    state.row = row;
    say(problem, '');
    cannot.hidden = !row.error;
    update(cannot, 'claimd cannot post: ', text(row.error ?? ''));
    update(known, facts(stateFacts(project, row)));
    update(next, ...row.next.length ? row.next.map((time) => h('li', {}, when(time)))
      : [h('li', {}, row.paused ? 'none while it is paused' : 'none')]);
    actions.show(row);
    if (source !== state.body)
      body.replaceChildren(...bodySection(source ?? ''));
    state.body = source;
  }

  function fail(error) {
    if (error.status === 404)
      actions.show(null);
    say(problem, error.status === 404 ? 'There is no schedule with this name in this queue.'
      : errorText(error));
  }

  actions.show(null);
  main.append(crumbs(project, ' / ', h('a', {href: queueHref(project, queue)}, text(queue)), ' / ',
    h('a', {href: schedulesHref(project, queue)}, 'Schedules')),
  h('h1', {id: 'schedule-title'}, 'Schedule ', text(name)),
  lead('When claimd posts the message, and how that went.'), problem, cannot,
  h('p', {class: 'buttons'}, actions.elements),
  h('div', {class: 'columns'}, section('state-title', 'State', known),
    section('next-title', 'Next due times', next)),
  section('body-title', 'Body of the messages', body));
  state.live = new Live(withQuery(schedulePath(queue, name), {next: NEXT_SHOWN}),
    {project, every: EVERY_MS, read: readSchedule, onData: show, onError: fail}).start();
  return {close: () => state.live.close()};
}
