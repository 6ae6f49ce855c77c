/* The requests of the client: retries, long polling, and the end of both by stop(). */
"use strict";

const { randomUUID } = require("node:crypto");
const { setMaxListeners } = require("node:events");
const http = require("node:http");
const https = require("node:https");
const { hostname } = require("node:os");
const { text } = require("node:stream/consumers");
const { setTimeout: sleep } = require("node:timers/promises");

const REPEATED = [0, 429, 502, 503, 504]; // statuses that ask for another attempt. 0: no response
const LONGEST_PAUSE_S = 10; // between two attempts. The first pause is 0.1 s, and they double
const PATIENCE_S = 60; // how long a request is repeated
const STOPPING_S = 5; // how long it is repeated after stop()
const LONG_POLL_S = 20; // how long the server may wait for a message
const SLACK_S = 10; // how long a response may take besides

/** Seconds of a clock that only grows. */
const now = () => performance.now() / 1000;

/** The document of a response. A string if another server than claimd sent it. */
function readDocument(status, headers, said) {
  if (status >= 300 && status < 400) return `Location: ${headers.location}`;
  try {
    return JSON.parse(said || "null");
  } catch {
    return said.slice(0, 200);
  }
}

/** claimd refused a request. If there was no response until the deadline, the status is 0. */
class Failed extends Error {
  name = "Failed";

  status = 0;
}

/** The job is not yours any more. Another worker has it or will have it: undo your work. */
class Lost extends Error {
  name = "Lost";
}

function parseUrl(given) {
  if (!/^https?:\/\/[^/]/i.test(given)) {
    throw new TypeError(`the URL is ${given}. It must begin with http:// or https://`);
  }
  if (/[@?#\s]/.test(given)) {
    throw new TypeError(`the URL is ${given}. It must be scheme, host, port and path only`);
  }
  try {
    return new URL(given);
  } catch {
    throw new TypeError(`the URL is ${given}. Its host or port is not valid`);
  }
}

/** Host and process, in at most 40 visible characters. */
function workerName() {
  const pid = ` ${process.pid}`;
  return hostname().replace(/[^!-~]/g, "?").slice(0, 40 - pid.length) + pid;
}

/** A server, seen from one project, and the connections to it. */
class Server {
  constructor(url, { project, token, clientId } = {}) {
    const given = url || process.env.CLAIMD_URL || "http://127.0.0.1:8888";
    this.url = parseUrl(given);
    this._library = this.url.protocol === "https:" ? https : http;
    this._agent = new this._library.Agent({ keepAlive: true });
    const headers = {
      "Client-ID": clientId || randomUUID(),
      "Claimd-Worker": workerName(),
      "Content-Type": "application/json",
      "X-Project-ID": project || process.env.CLAIMD_PROJECT,
      "X-Auth-Token": token || process.env.CLAIMD_TOKEN,
    };
    this.headers = {};
    for (const [name, value] of Object.entries(headers)) {
      if (value) this.headers[name] = Buffer.from(value).toString("latin1"); // as UTF-8
    }
    this.stopped = Infinity; // when stop() was called
    this.stop = this.stop.bind(this); // as a handler of signals
    this._stopping = new AbortController();
    setMaxListeners(0, this._stopping.signal); // one for each request
  }

  /** Ends workers and their long polling. */
  stop() {
    this.stopped = Math.min(this.stopped, now());
    this._stopping.abort();
  }

  /** Sends a request once. The status is 0 if there was no response. */
  _send(method, path, body, headers, poll) {
    return new Promise((resolve) => {
      const sent = now();
      const { signal } = this._stopping;
      const { hostname, port, pathname } = this.url;
      const request = this._library.request({
        method,
        headers,
        agent: this._agent,
        hostname: hostname.replace(/[[\]]/g, ""),
        port,
        path: pathname.replace(/\/+$/, "") + path,
      });
      // Only the sending half, so that a claim that was just made still arrives.
      const halfClose = () => {
        if (poll && signal.aborted && request.socket) request.socket.end();
      };
      const onTimeout = () => request.destroy(new Error("no response in time"));
      const timers = [];
      const limit = (seconds) => timers.push(setTimeout(onTimeout, 1000 * seconds));
      const onStop = () => {
        halfClose();
        limit(STOPPING_S);
      };
      const end = (status, found, said) => {
        timers.forEach(clearTimeout);
        signal.removeEventListener("abort", onStop);
        resolve({ status, headers: found, said, sent });
      };
      limit(poll ? SLACK_S + LONG_POLL_S : SLACK_S);
      if (signal.aborted) limit(STOPPING_S);
      signal.addEventListener("abort", onStop);
      request.on("socket", halfClose);
      request.on("error", (error) => end(0, {}, String(error)));
      request.on("response", async (response) => {
        try {
          const { statusCode, headers: found } = response;
          end(statusCode, found, readDocument(statusCode, found, await text(response)));
        } catch (error) {
          end(0, {}, String(error));
        }
      });
      request.end(body);
    });
  }

  /** Sends a request, and repeats it for so many seconds as long as that may help. */
  async request(method, path, document, { accept = [], seconds = PATIENCE_S, poll = false } = {}) {
    // Not a string: node would encode the headers beside it once more.
    const body = Buffer.from(document ? JSON.stringify(document) : "");
    const headers = { "Idempotency-Key": randomUUID(), ...this.headers };
    headers["Content-Length"] = body.length;
    const grace = poll ? 0 : STOPPING_S;
    let until = now() + seconds;
    for (let longest = 0.1; ; longest = Math.min(2 * longest, LONGEST_PAUSE_S)) {
      const wait = poll ? Math.min(LONG_POLL_S, Math.max(1, until - now())) : 0;
      headers.Prefer = `details, wait=${Math.floor(wait)}`;
      const response = await this._send(method, path, body, headers, poll);
      const { status, said, sent } = response;
      until = Math.min(until, this.stopped + grace);
      const after = response.headers["retry-after"] || "";
      let pause = Math.random() * longest + (/^\d+$/.test(after) ? Number(after) : 0);
      const isEmpty = poll && status === 204;
      if (isEmpty && now() > sent + 1) { // the server has waited
        pause = 0.05;
        longest = 0.05;
      }
      const mayHelp = isEmpty || REPEATED.includes(status) || after !== "";
      const isRepeated = mayHelp && now() + pause < until;
      if (isRepeated && longest > 1 && status !== 204) {
        console.error("%s %s: %d %j. Trying again", method, path, status, said);
      }
      if (isRepeated && (await this._pause(pause, grace))) continue;
      const isGood = status >= 200 && status < 300 && typeof said !== "string";
      const wasStopped = poll && this.stopped < Infinity;
      if (isGood || accept.includes(status) || wasStopped) return response;
      const error = new Failed(`${method} ${path}: ${status} ${JSON.stringify(said)}`);
      throw Object.assign(error, { status });
    }
  }

  /** A pause, which ends `grace` seconds after stop(). Returns false if that has ended it. */
  async _pause(seconds, grace) {
    const end = now() + seconds;
    await sleep(1000 * seconds, null, { signal: this._stopping.signal }).catch(() => {});
    const left = Math.min(end, this.stopped + grace) - now();
    if (left > 0) await sleep(1000 * left);
    return now() < this.stopped + grace;
  }
}

module.exports = { Failed, Lost, PATIENCE_S, STOPPING_S, Server, now };
