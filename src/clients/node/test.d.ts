import { Queue } from "./index";

/** A project for this test, no fault rules, and a clock that only the test moves. */
export function claimd(t: {
  readonly name: string;
  after(hook: () => Promise<void>): void;
  diagnostic(message: string): void;
}): Promise<Claimd>;

/** The server, and a project of one test's own. */
export class Claimd {
  readonly url: string;
  readonly project: string;
  /** Set it to false in a test that leaves messages or claims behind on purpose. They are deleted. */
  checkLeaks: boolean;
  /** The Client-ID of a producer or a worker. */
  client(name: string): string;
  /** A queue of this project, for a client of this name ("worker"). */
  queue<Body = any>(name: string, client?: string): Queue<Body>;
  /** The document of the response. An error fails the test with its description. */
  ask(method: string, path: string, document?: unknown): Promise<any>;
  /** Moves the clock. Leases of this test may end. Returns the names of the events of this test. */
  advance(seconds: number): Promise<string[]>;
  /** Fails unless a queue has these counts of messages, within `wait` seconds. */
  expect(queue: string, counts: { messages?: number; claimed?: number; free?: number; wait?: number }): Promise<void>;
  /** The history of this test, in order: all, or these events. */
  history(...events: string[]): Promise<any[]>;
  /** Replaces the rules. Each is an action, and a fault for its next request. */
  faults(...rules: [action: string, fault: string][]): Promise<void>;
  /** Claims that have not ended, messages that were never read, unseen dead letters. */
  leaks(): Promise<string[]>;
}
