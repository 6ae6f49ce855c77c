/** Where claimd is. What you leave out comes from CLAIMD_URL, CLAIMD_PROJECT and CLAIMD_TOKEN. */
export interface ClientOptions {
  project?: string;
  token?: string;
  /** A UUID. A random one by default. */
  clientId?: string;
}

/** A server, seen from one project. */
export class Client {
  constructor(url?: string, options?: ClientOptions);
  readonly url: URL;
  queue<Body = any>(name: string): Queue<Body>;
  /** Ends workers and their long polling. */
  stop(): void;
  /** Sends a request, and repeats it for so many seconds (60) as long as that may help. */
  request(method: string, path: string, document?: unknown, options?: {
    /** Statuses of errors that are returned instead of thrown. */
    accept?: number[];
    seconds?: number;
    /** With long polling. */
    poll?: boolean;
  }): Promise<{ status: number; headers: Record<string, any>; said: any; sent: number }>;
}

export class Queue<Body = any> {
  readonly client: Client;
  /** Posts messages and returns their ids. If the request is repeated, they are there once. */
  post(bodies: Body[], options?: { ttl?: number; delay?: number }): Promise<string[]>;
  /** Claims up to `limit` (1) messages. null if none was ready for about `wait` (20) seconds. */
  claim(options?: { lease?: number; limit?: number; wait?: number }): Promise<Claim<Body> | null>;
  /**
   * Calls handle(job) for each message and deletes it. If handle throws, the message is ready again
   * after delay(attempt) seconds. If the job is lost, calls undo(job). Returns after client.stop(),
   * which SIGTERM, SIGINT and an AbortSignal call. A second SIGINT, at least one second later, has
   * its usual effect.
   */
  work(handle: (job: Job<Body>) => unknown, options?: WorkOptions<Body>): Promise<void>;
}

export interface WorkOptions<Body = any> {
  undo?: (job: Job<Body>) => unknown;
  /** Seconds, 60 by default. */
  lease?: number;
  /** Messages of a claim, 1 by default. */
  limit?: number;
  /** Seconds until the next attempt at a failed job: 2, 4, 8 and so on, up to 900. */
  delay?: (attempt: number) => number;
  /** Calls client.stop() when it is aborted. */
  signal?: AbortSignal;
}

/** Jobs with a lease. A timer renews it after each third of its time, until the jobs end. */
export class Claim<Body = any> {
  readonly client: Client;
  readonly jobs: Job<Body>[];
  readonly lease: number;
  /** The fencing token: larger than that of all earlier claims of the queue. */
  readonly number: bigint;
  /** Gives back the jobs that have not ended. */
  release(): Promise<void>;
}

/** A claimed message. */
export class Job<Body = any> {
  readonly id: string;
  readonly body: Body;
  /** Counts the deliveries of the message from 1. */
  readonly attempt: number;
  readonly claim: Claim<Body>;
  /** True after delete, finish or retry. */
  readonly ended: boolean;
  /** True if the lease has ended. */
  readonly lost: boolean;
  /** Ends a job that is done. Throws Lost if the lease has ended. */
  delete(): Promise<void>;
  /** Deletes the message and posts others in one step. Throws Lost if the lease has ended. */
  finish(parts?: { post?: Post[] }): Promise<{ queue: string; resources?: string[] }[]>;
  /** Gives the message back. It is ready again after so many seconds, in its old position. */
  retry(delay?: number, reason?: string): Promise<void>;
}

export interface Post {
  queue: string;
  messages: { body: unknown; ttl?: number; delay?: number }[];
}

/** claimd refused a request. If there was no response until the deadline, the status is 0. */
export class Failed extends Error {
  readonly status: number;
}

/** The job is not yours any more. Another worker has it or will have it: undo your work. */
export class Lost extends Error {}
