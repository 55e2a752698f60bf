/** `user`: manages who can sign in by email and password, also while an engine runs. */
import process from "node:process";
import { Accounts } from "../src/account/accounts.ts";
import type { Config } from "../src/config.ts";
import { createStore, storeLocation } from "../src/database/store.ts";
import { MillraceError } from "../src/errors.ts";
import type { Ports } from "../src/ports.ts";
import { chooseDirectories, requirePrivate } from "./directories.ts";
import { print } from "./host.ts";
import { askPassword, readPassword } from "./password-input.ts";

/** Runs `user add|passwd|remove EMAIL` or `user list` and returns the exit code. */
export async function runUser(config: Config, ports: Ports): Promise<number> {
  const [command, email, extra] = config.words;
  const directories = chooseDirectories(config);
  await requirePrivate(ports, directories.stateDir, "state-dir");
  const store = createStore(ports, storeLocation({ ...config, ...directories }));
  try {
    await run(new Accounts(store, ports.clock), command, email, extra);
  } finally {
    await store.close();
  }
  return 0;
}

async function run(accounts: Accounts, command = "", email?: string, extra?: string): Promise<void> {
  if (command === "list") {
    if (email !== undefined) throw unexpected(email);
    for (const account of await accounts.list()) {
      print(`${account.email}\t${new Date(account.createdAt * 1000).toISOString()}`);
    }
    return;
  }
  if (!["add", "passwd", "remove"].includes(command)) {
    throw new MillraceError("config", `user needs a command: add, passwd, remove or list; see --help`);
  }
  if (email === undefined) throw new MillraceError("config", `user ${command} needs an email address`);
  if (extra !== undefined) throw unexpected(extra);
  if (command === "remove") {
    await accounts.remove(email);
    print(`removed ${email}`);
    return;
  }
  const password = process.stdin.isTTY ? await askPassword() : await readPassword(process.stdin);
  if (command === "add") await accounts.add(email, password);
  else await accounts.changePassword(email, password);
  print(command === "add" ? `added ${email}` : `changed the password of ${email}`);
}

function unexpected(word: string): MillraceError {
  return new MillraceError("config", `unexpected argument ${JSON.stringify(word.slice(0, 60))}; see --help`);
}
