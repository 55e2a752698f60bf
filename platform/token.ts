/** `token`: shows or replaces the access token of the JSON API, also while an engine runs. */
import { loadAccessToken, rotateAccessToken } from "../src/account/access-token.ts";
import type { Config } from "../src/config.ts";
import { MillraceError } from "../src/errors.ts";
import type { Ports } from "../src/ports.ts";
import { chooseDirectories, requirePrivate } from "./directories.ts";
import { print } from "./host.ts";

/** Runs `token [show|rotate]` and returns the exit code. */
export async function runToken(config: Config, ports: Ports): Promise<number> {
  const [command = "show"] = config.words;
  const { stateDir } = chooseDirectories(config);
  if (config.accessToken === null) await requirePrivate(ports, stateDir, "state-dir");
  switch (command) {
    case "show":
      print(config.accessToken ?? (await loadAccessToken(ports, stateDir)).value);
      return 0;
    case "rotate":
      if (config.accessToken !== null) {
        throw new MillraceError("config", "the token is set by --access-token or its variable; change it there");
      }
      print((await rotateAccessToken(ports.files, stateDir)).value);
      return 0;
    default:
      throw new MillraceError("config", `unknown command token ${JSON.stringify(command.slice(0, 60))}; see --help`);
  }
}
