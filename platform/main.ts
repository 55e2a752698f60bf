/** The command line, the same on all runtimes: configuration, commands, exit codes. */
import { readFileSync } from "node:fs";
import process from "node:process";
import { type Config, configPath, helpText, misspeltVariables, parseConfig } from "../src/config.ts";
import { MillraceError } from "../src/errors.ts";
import type { Logger } from "../src/ports.ts";
import { VERSION } from "../src/version.ts";
import { runBackup, runRestore } from "./backup.ts";
import { runBroadcast } from "./broadcast.ts";
import { runDemo } from "./demo/demo.ts";
import { runDoctor } from "./doctor/doctor.ts";
import { complain, print, type Runtime, stopSignal } from "./host.ts";
import { runRelay } from "./relay.ts";
import { runSeed } from "./seed.ts";
import { readyLine, startError, startServing } from "./serve.ts";
import { runCheck, runImport } from "./task-commands.ts";
import { runToken } from "./token.ts";
import { runUser } from "./user.ts";
import { runVerify } from "./verify/verify.ts";

/** Exit code for errors that the user has to correct: wrong flag, port taken, directory not writable. */
const EXIT_USAGE = 2;

/** Exit code for a fault of the program. */
const EXIT_FAULT = 1;

/** Runs the program and ends the process. */
export async function main(runtime: Runtime): Promise<never> {
  let code = EXIT_FAULT;
  try {
    code = await run(runtime, process.argv.slice(2));
  } catch (error) {
    const line = startError(error);
    if (line === null) complain(`millrace: internal error: ${(error as Error)?.stack ?? error}`);
    else complain(line);
    code = line === null ? EXIT_FAULT : EXIT_USAGE;
  }
  process.exit(code);
}

async function run(runtime: Runtime, args: readonly string[]): Promise<number> {
  const config = readConfig(args);
  if (config.command === "help") {
    process.stdout.write(helpText());
    return 0;
  }
  if (config.command === "version") {
    print(`millrace ${VERSION}`);
    return 0;
  }
  const ports = runtime.createPorts({ log: { level: config.logLevel, format: config.logFormat } });
  surviveStrayErrors(ports.log);
  for (const line of misspeltVariables(process.env)) ports.log.log("warn", line);
  if (config.command === "token") return await runToken(config, ports);
  if (config.command === "user") return await runUser(config, ports);
  if (config.command === "backup") return await runBackup(config, ports);
  if (config.command === "restore") return await runRestore(config, ports);
  if (config.command === "doctor") return await runDoctor(config, ports);
  const stopped = stopSignal();
  switch (config.command) {
    case "seed":
      return await runSeed(config, ports, stopped);
    case "broadcast":
      return await runBroadcast(config, ports, stopped);
    case "relay":
      return await runRelay(config, ports, stopped);
    case "import":
      return await runImport(config, ports, stopped);
    case "check":
      return await runCheck(config, ports, stopped);
    case "verify":
      return await runVerify(config, ports, stopped);
    case "demo":
      return await runDemo(config, ports, runtime.self, stopped);
    case "serve": {
      const serving = await startServing(config, ports);
      print(readyLine(serving, config.logFormat));
      await stopped;
      await serving.stop();
      return 0;
    }
  }
}

function readConfig(args: readonly string[]): Config {
  const { env } = process;
  const path = configPath({ args, env });
  if (path === null) return parseConfig({ args, env });
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    const why = (cause as { code?: string }).code ?? (cause as Error).message;
    throw new MillraceError("config", `--config: cannot read ${path} (${why})`, { cause });
  }
  return parseConfig({ args, env, file: { path, text } });
}

/** Logs errors that nobody caught, with their stack, instead of ending: one broken stream must not end all others. */
function surviveStrayErrors(log: Logger): void {
  const survive = (reason: unknown) => {
    const stack = reason instanceof Error ? reason.stack : undefined;
    log.log("error", "an error was not handled", { code: "internal", error: reason, stack });
  };
  // Nobody reads what is printed any more. To log that would fail in the same way, again and again.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  process.on("unhandledRejection", survive);
  process.on("uncaughtException", survive);
}
