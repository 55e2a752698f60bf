/** What the engine keeps in its state directory: one table for its page, for backups and for permissions. */

/** One name in the state directory. */
export interface StateEntry {
  /** A folder ends in `/`. */
  readonly name: string;
  /** One phrase for the page. */
  readonly what: string;
  /** In a backup. What is not there is made again, belongs to this machine, or is too large. */
  readonly isBackedUp: boolean;
  /** A file that only its owner may read. */
  readonly isSecret?: true;
}

/** Everything that outlasts a run, in the order in which a backup reads it: what names other files comes before them. */
export const STATE_LAYOUT: readonly StateEntry[] = [
  { name: "sessions.json", what: "sessions whose URLs work again after a restart", isBackedUp: true, isSecret: true },
  { name: "millrace.db", what: "library, settings, accounts, positions, guides", isBackedUp: true, isSecret: true },
  { name: "access-token", what: "token of the JSON API", isBackedUp: true, isSecret: true },
  { name: "secret-key", what: "key that seals the passwords of lists", isBackedUp: true, isSecret: true },
  { name: "sign-in-key.json", what: "key of the current sign-in", isBackedUp: true, isSecret: true },
  { name: "cast-key", what: "key by which other engines know this one", isBackedUp: true, isSecret: true },
  { name: "cast-senders.json", what: "engines that may play here", isBackedUp: true },
  { name: "fronts/", what: "what fronts remember", isBackedUp: true },
  { name: "transport/", what: "transport files, and which content ids they have", isBackedUp: true },
  { name: "wrappers/", what: "what addresses of transport files led to", isBackedUp: true },
  { name: "own-broadcasts/", what: "keys and positions of broadcasts that the page started", isBackedUp: true },
  { name: "broadcasts/", what: "transport files that `broadcast` published", isBackedUp: true },
  { name: "state", what: "key and position of `broadcast`", isBackedUp: true, isSecret: true },
  { name: "broadcast.torrent", what: "transport file of `broadcast`", isBackedUp: true },
  { name: "viewers", what: "addresses of viewers of `broadcast`, to find the swarm again", isBackedUp: false },
  { name: "saved", what: "exists while `state` is up to date", isBackedUp: false },
  { name: "node/", what: "what the engine inside `broadcast` keeps", isBackedUp: false },
  { name: "relay/", what: "what the engine inside `relay` keeps", isBackedUp: false },
  { name: "recordings/", what: "recordings; copy the folder while no engine runs", isBackedUp: false },
  { name: "imports/", what: "lists that are being imported", isBackedUp: false },
  { name: "live-window/", what: "older parts of broadcasts that are being played", isBackedUp: false },
  { name: "dht.json", what: "nodes of the DHT, to find it again", isBackedUp: false },
  { name: "lib/", what: "copy of SQLite's library, on Node 20", isBackedUp: false },
  { name: "lock", what: "socket that keeps two engines apart", isBackedUp: false },
];

/** The table of the page, Markdown. */
export function stateTable(): string {
  const rows = STATE_LAYOUT.map(({ name, what, isBackedUp }) =>
    `| \`${name}\` | ${what} | ${isBackedUp ? "yes" : "no"} |`
  );
  return ["| name | what | in a backup |", "| --- | --- | --- |", ...rows].join("\n");
}
