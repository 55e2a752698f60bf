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
  | "backup"
  | "restore"
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
  backup: 1,
  restore: 1,
  doctor: 0,
  verify: 1000,
  demo: 0,
  seed: 0,
};

/** The commands as `--help` shows them. */
export const USAGE = `Usage: millrace [serve] [options]   serve HTTP clients until stopped
       millrace broadcast --source SOURCE --name NAME [options]
                                    send a stream live to any number of viewers
       millrace relay --url STREAM [options]
                                    pass a broadcast on without watching it
       millrace user COMMAND        manage who can sign in: add EMAIL, passwd EMAIL, remove EMAIL, list
       millrace token [COMMAND]     the API's access token: show, or rotate to replace it
       millrace import LIST         import an M3U list, a file or an address, into the engine running here
       millrace check [TITLE]       find out which items of its playlist somebody shares now
       millrace backup FILE         copy library, settings, accounts and keys into a file, also while an engine runs
       millrace restore FILE        put them back into an empty state directory
       millrace doctor [options]    check ports, disk, database, ffmpeg, DHT and trackers, and say what to do
       millrace verify FILE...      read films whole, files or addresses, and say what does not come out
       millrace demo [options]      play a small clip from a second process`;
