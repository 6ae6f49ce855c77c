/* The loop of a worker: its signals, and jobs that fail or are lost. */
"use strict";

const { inspect } = require("node:util");

const { Lost } = require("./server.js");

const SIGNALS = ["SIGTERM", "SIGINT"];
const SECOND_INTERRUPT_S = 1; // an earlier SIGINT is the same one, sent twice by a terminal and npm
const retryDelay = (attempt) => Math.min(2 ** attempt, 900); // seconds

/** What Queue.work() does. */
async function work(queue, handle, options) {
  const { undo = () => {}, lease = 60, limit = 1, delay = retryDelay, signal } = options;
  for (const act of [handle, undo]) {
    if (typeof act !== "function") {
      throw new TypeError(`work() takes functions, and got ${inspect(act)}`);
    }
    if (isGenerator(act, "GeneratorFunction")) {
      throw new TypeError(`${inspect(act)} is a generator, which work() cannot run`);
    }
  }
  if (signal !== undefined && typeof (signal || {}).addEventListener !== "function") {
    throw new TypeError(`work() takes an AbortSignal, and got ${inspect(signal)}`);
  }
  const { client } = queue;
  if (client._workers === 0) SIGNALS.forEach((name) => process.on(name, client._handleSignal));
  client._workers += 1;
  try {
    if (signal && signal.aborted) client.stop();
    if (signal) signal.addEventListener("abort", client.stop);
    while (client.stopped === Infinity) {
      const claim = await queue.claim({ lease, limit, wait: Infinity });
      if (claim === null) continue;
      for (const job of claim.jobs) {
        if (client.stopped === Infinity && !job.lost) await processJob(job, handle, undo, delay);
      }
      await claim.release();
    }
  } finally {
    if (signal) signal.removeEventListener("abort", client.stop);
    client._workers -= 1;
    if (client._workers === 0) SIGNALS.forEach((name) => process.off(name, client._handleSignal));
  }
}

/** The handler of signals of a client. The second SIGINT goes through. */
function signalHandler(client) {
  const handle = (name) => {
    client.stop();
    if (name !== "SIGINT") return;
    setTimeout(() => process.off(name, handle), 1000 * SECOND_INTERRUPT_S).unref();
  };
  return handle;
}

/** Also those that are async. */
function isGenerator(value, kind) {
  const found = Object.prototype.toString.call(value);
  return found === `[object ${kind}]` || found === `[object Async${kind}]`;
}

async function processJob(job, handle, undo, delay) {
  let failed = await attempt(job, handle);
  if (!failed && !job.ended) {
    failed = await attempt(job, () => job.delete());
  }
  const isLost = failed && failed.error instanceof Lost && job.lost; // not of another job
  if (failed && !isLost && !job.ended) await retry(job, failed.error, delay);
  if (isLost) await attempt(job, undo);
}

/**
 * A release without a pause would deliver the message again at once, so it has one always. If the
 * server refuses each pause, the message stays claimed until its lease ends.
 */
async function retry(job, error, delay) {
  let refused = await attempt(job, () => job.retry(delay(job.attempt), String(error)));
  if (refused && !(refused.error instanceof Lost)) {
    refused = await attempt(job, () => job.retry(retryDelay(job.attempt)));
  }
  if (refused) job._kept = true;
}

/** Returns { error } if it threw. A job may throw anything, and nothing ends the worker. */
async function attempt(job, act) {
  try {
    const result = await act(job);
    if (isGenerator(result, "Generator")) {
      throw new TypeError("the function returned a generator, which work() cannot run");
    }
  } catch (error) {
    report(job, error);
    return { error };
  }
}

function report(job, error) {
  try {
    console.error("job %s:", job.id, error);
  } catch { // the value that was thrown has methods that throw
    console.error("job %s: an error that cannot be shown", job.id);
  }
}

module.exports = { signalHandler, work };
