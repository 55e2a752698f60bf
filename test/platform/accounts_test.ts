import { readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertNotEquals, assertRejects } from "@std/assert";
import { askPassword, readPassword, type Terminal } from "../../platform/password-input.ts";
import { MillraceError } from "../../src/errors.ts";
import { type Outcome, quietFlags, run, start, withDirectory } from "./support.ts";

/** An engine waits here for several runs of the program, which hash passwords, ms. */
const ENGINE_MS = 90_000;

/** Runs the program with `input` on its standard input. */
function runWith(input: string, args: readonly string[], env: Record<string, string> = {}): Promise<Outcome> {
  const program = start(args, env);
  program.child.stdin!.end(input);
  return program.ended;
}

function assertRefused({ code, stdout, stderr }: Outcome, says: RegExp): void {
  assertEquals([code, stdout], [2, ""], stderr);
  assertEquals(stderr.trimEnd().split("\n").length, 1, stderr);
  assertMatch(stderr, says);
}

async function serve(directory: string) {
  const program = start(["serve", ...quietFlags(directory), "--log-format", "json"], {}, ENGINE_MS);
  const { http: url } = JSON.parse(await program.firstLine);
  const call = async (params: Record<string, string>) =>
    await (await fetch(`${url}/server/api`, { method: "POST", body: new URLSearchParams(params) })).json();
  const stop = async () => {
    program.kill("SIGTERM");
    return await program.ended;
  };
  return { call, stop };
}

test("millrace user manages accounts beside a running engine", () =>
  withDirectory(async (directory) => {
    const state = ["--state-dir", path.join(directory, "state")];
    const engine = await serve(directory);
    try {
      const { token } = (await engine.call({ method: "get_api_access_token" })).result;
      const signIn = async (password: string) =>
        await engine.call({ method: "sign_in", token, email: "ada@example.org", password });
      assertEquals((await run(["user", "list", ...state])).stdout, "");
      const added = await runWith("correct horse\n", ["user", "add", "Ada@example.org", ...state]);
      assertEquals([added.code, added.stdout, added.stderr], [0, "added Ada@example.org\n", ""]);
      assertMatch((await run(["user", "list", ...state])).stdout, /^ada@example\.org\t20\d\d-\d\d-\d\dT[\d:.]+Z\n$/);
      assertEquals((await signIn("correct horse")).result, "ok");
      assertEquals((await engine.call({ method: "check_auth", token })).result.login, "ada@example.org");
      const changed = await runWith("battery staple\r\n", ["user", "passwd", "ada@example.org", ...state]);
      assertEquals([changed.code, changed.stderr], [0, ""]);
      assertEquals((await engine.call({ method: "check_auth", token })).result.login, null);
      assertEquals((await signIn("correct horse")).error, { message: "auth_error", code: 0 });
      assertEquals((await signIn("battery staple")).result, "ok");
      assertRefused(await runWith("another one\n", ["user", "add", "ada@example.org", ...state]), /see user passwd/);
      const removed = await run(["user", "remove", "ada@example.org", ...state]);
      assertEquals([removed.code, removed.stderr], [0, ""]);
      assertEquals((await run(["user", "list", ...state])).stdout, "");
      assertEquals((await signIn("battery staple")).error, { message: "auth_error", code: 0 });
    } finally {
      assertEquals((await engine.stop()).stderr, "");
    }
    const file = path.join(directory, "state", "millrace.db");
    assertEquals(statSync(file).mode & 0o077, 0);
    assert(!readFileSync(file).includes("battery staple"));
  }));

test("millrace user reports errors in one line with exit code 2", () =>
  withDirectory(async (directory) => {
    const state = ["--state-dir", path.join(directory, "state")];
    const table: [string, string[], RegExp][] = [
      ["", ["user"], /add, passwd, remove or list/],
      ["", ["user", "promote", "a@b.org"], /add, passwd, remove or list/],
      ["", ["user", "list", "a@b.org"], /unexpected argument "a@b\.org"/],
      ["", ["user", "add"], /needs an email address/],
      ["", ["user", "add", "a@b.org", "password"], /unexpected argument "password"/],
      ["long enough\n", ["user", "add", "not-an-address"], /email address/],
      ["short\n", ["user", "add", "a@b.org"], /8 to 1024 characters/],
      ["", ["user", "add", "a@b.org"], /standard input/],
      ["long enough\n", ["user", "passwd", "a@b.org"], /there is no account/],
      ["", ["user", "remove", "a@b.org"], /there is no account/],
    ];
    for (const [input, args, says] of table) assertRefused(await runWith(input, [...args, ...state]), says);
  }));

test("millrace token rotate shuts the old token out of a running engine at once", () =>
  withDirectory(async (directory) => {
    const state = ["--state-dir", path.join(directory, "state")];
    const shown = (await run(["token", ...state])).stdout.trim();
    assertMatch(shown, /^[0-9a-f]{64}$/);
    const engine = await serve(directory);
    const works = async (token: string) => (await engine.call({ method: "check_auth", token })).error === null;
    try {
      assertEquals((await engine.call({ method: "get_api_access_token" })).result.token, shown);
      assertEquals(await works(shown), true);
      const rotated = (await run(["token", "rotate", ...state])).stdout.trim();
      assertMatch(rotated, /^[0-9a-f]{64}$/);
      assertNotEquals(rotated, shown);
      assertEquals([await works(shown), await works(rotated)], [false, true]);
      assertEquals((await engine.call({ method: "get_api_access_token" })).result.token, rotated);
      assertEquals((await run(["token", "show", ...state])).stdout.trim(), rotated);
      const file = path.join(directory, "state", "access-token");
      assertEquals(statSync(file).mode & 0o777, 0o600);
      // With a damaged file nobody gets in, and the log says so.
      writeFileSync(file, "damaged");
      assertEquals([await works(rotated), await works("damaged")], [false, false]);
    } finally {
      assertMatch((await engine.stop()).stderr, /the access token's file was damaged/);
    }
  }));

test("millrace token refuses to rotate a token from the configuration", () =>
  withDirectory(async (directory) => {
    const state = ["--state-dir", path.join(directory, "state")];
    const given = "ab".repeat(32);
    const env = { MILLRACE_ACCESS_TOKEN: given };
    assertEquals((await run(["token", ...state], env)).stdout, `${given}\n`);
    assertRefused(await run(["token", "rotate", ...state], env), /--access-token/);
    assertRefused(await run(["token", "forget", ...state]), /unknown command token "forget"/);
  }));

/** A terminal that types `keys` at the first prompt. */
class TypingTerminal implements Terminal {
  shown = "";
  isRaw = false;
  readonly #keys: string;
  #handler: ((chunk: Uint8Array) => void) | null = null;

  constructor(keys: string) {
    this.#keys = keys;
  }

  readonly output = {
    write: (text: string) => {
      if (this.shown === "") {
        assert(this.isRaw, "who types at once is not to see it either");
        // Byte by byte: letters come in parts.
        for (const byte of new TextEncoder().encode(this.#keys)) {
          queueMicrotask(() => this.#handler?.(new Uint8Array([byte])));
        }
      }
      this.shown += text;
    },
  };
  readonly input: Terminal["input"] = {
    setRawMode: (raw) => void (this.isRaw = raw),
    on: (_event, handler) => void (this.#handler = handler),
    off: () => void (this.#handler = null),
    resume: () => {},
    pause: () => {},
  };
}

test("askPassword() takes corrections, shows nothing, and asks twice", async () => {
  const terminal = new TypingTerminal("wrong\x15gex\x7fheim é🎬\rgeheim é🎬\n");
  assertEquals(await askPassword(terminal), "geheim é🎬");
  assertEquals([terminal.shown, terminal.isRaw], ["Password: \nAgain: \n", false]);
  const table: [string, string][] = [
    ["one password\ranother one\r", "config"],
    ["half a passw\x03", "aborted"],
    ["\x04", "aborted"],
  ];
  for (const [keys, code] of table) {
    const terminal = new TypingTerminal(keys);
    const error = await assertRejects(() => askPassword(terminal), MillraceError);
    assertEquals([(error as MillraceError).code, terminal.isRaw], [code, false]);
  }
});

test("readPassword() takes the first line, however it comes in parts", async () => {
  const from = (...chunks: (string | Uint8Array)[]) =>
    readPassword((async function* () {
      for (const chunk of chunks) yield await Promise.resolve(chunk);
    })());
  assertEquals(await from("two words\nrest"), "two words");
  assertEquals(await from("two wo", "rds\r", "\n"), "two words");
  assertEquals(await from("no end"), "no end");
  const bytes = new TextEncoder().encode("Zürich\n");
  assertEquals(await from(bytes.subarray(0, 2), bytes.subarray(2)), "Zürich");
  for (const chunks of [[], ["\n"], ["x".repeat(20_000)]]) {
    await assertRejects(() => from(...chunks), MillraceError, "standard input");
  }
});
