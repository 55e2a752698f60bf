/** What the program can be told to do. */

/** The program's task. `seed` is the demo's second process. */
export type Command =
  | "serve"
  | "broadcast"
  | "relay"
  | "user"
  | "token"
  | "import"
  | "check"
  | "doctor"
  | "verify"
  | "demo"
  | "seed"
  | "help"
  | "version";

/** Commands, and how many words may follow each. */
export const COMMANDS: Readonly<Partial<Record<string, number>>> = {
  serve: 0,
  broadcast: 0,
  relay: 0,
  user: 2,
  token: 1,
  import: 1,
  check: 1,
  doctor: 0,
  verify: 1000,
  demo: 0,
  seed: 0,
};
