// Runs commands with the node client, one JSON object a line. driver.py has the same words.
"use strict";

const readline = require("node:readline");

const noText = () => {
  throw new Error("it has no text");
};
const unprintable = { toString: noText, [Symbol.for("nodejs.util.inspect.custom")]: noText };

module.exports = async function drive({ Client, Lost }) {
  const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const say = (document) => process.stdout.write(JSON.stringify(document ?? null) + "\n");
  const listen = async () => {
    const { value, done } = await lines.next();
    if (done) process.exit(0);
    return JSON.parse(value);
  };
  const claims = [];
  let client = null;
  const jobOf = ({ claim = claims.length - 1, job = 0 }) => claims[claim].jobs[job];

  const words = {
    connect({ url, project = "demo", token }) {
      client = new Client(url, { project, token });
    },
    post: ({ queue, bodies, ...terms }) => client.queue(queue).post(bodies, terms),
    async claim({ queue, ...terms }) {
      const claim = await client.queue(queue).claim(terms);
      if (claim === null) return null;
      claims.push(claim);
      return claim.jobs.map(({ id, body, attempt }) => ({ id, body, attempt }));
    },
    delete: (order) => jobOf(order).delete(),
    finish: (order) => jobOf(order).finish({ post: order.post }),
    retry: (order) => jobOf(order).retry(order.delay, order.reason),
    lost: (order) => jobOf(order).lost,
    number: ({ claim = claims.length - 1 }) => String(claims[claim].number),
    release: ({ claim = claims.length - 1 }) => claims[claim].release(),
    async request({ method, path, document, seconds }) {
      return (await client.request(method, path, document, { seconds })).status;
    },
    work_with({ kind }) {
      const handle = { generator: function* generate() {}, nothing: undefined }[kind];
      const signal = kind === "signal" ? {} : undefined;
      return client.queue("jobs").work(signal ? () => {} : handle, { signal });
    },
    async work({ queue, pause = 0, abort = false, ...terms }) {
      const stop = new AbortController();
      await client.queue(queue).work(async (job) => {
        say({ begun: job.body, attempt: job.attempt });
        let order = await listen();
        for (; order === "is it lost"; order = await listen()) say(job.lost);
        if (abort) stop.abort();
        if (order === "fail") throw new TypeError("the job cannot be done\0\udcff");
        if (order === "raise Lost") throw new Lost("another job");
        if (order === "fail badly") throw unprintable;
        if (order === "return a generator") return (function* generate() {})();
        if (order !== "done") await job.finish(order);
        return say({ done: job.body });
      }, {
        undo(job) {
          say({ undone: job.body });
          throw null;
        },
        delay: () => pause,
        signal: abort ? stop.signal : undefined,
        ...terms,
      });
      return "stopped";
    },
  };

  for (;;) {
    const { do: word, ...order } = await listen();
    try {
      say({ result: (await words[word](order)) ?? null });
    } catch (error) {
      say({ error: error.constructor.name, status: error.status ?? null, text: error.message });
    }
  }
};
