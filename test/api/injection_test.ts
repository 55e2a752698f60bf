/** Hostile text in every parameter of every method, over HTTP: nothing gets into SQL, headers, paths or logs. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { METHODS } from "../../src/http/api/registry.ts";
import { loadPorts } from "../../platform/detect.ts";
import { createEngine } from "../../src/engine.ts";
import { createLogger } from "../../platform/shared/logger.ts";
import { temporaryDirectory } from "../support/engine.ts";
import { TOKEN } from "./support.ts";
import { openDatabase } from "../support/database.ts";

const ID = "0123456789abcdef0123456789abcdef01234567";
const MARK = "injected";

/** Each would leave MARK, a changed table or an internal error if it were treated as more than text. */
const HOSTILE: readonly string[] = [
  "' OR '1'='1",
  `'; DROP TABLE settings; --`,
  `'); INSERT INTO settings VALUES ('${MARK}', '1'); --`,
  `" UNION SELECT password FROM accounts --`,
  "_%_",
  "* MATCH NEAR(",
  '"a" AND NOT (b OR c*',
  "\\",
  "\\'",
  `x\r\nx-${MARK}: 1`,
  `x\r\n\r\n<script>${MARK}</script>`,
  `\n2026-01-01T00:00:00.000Z error ${MARK}`,
  "\u2028\u2029\u0085",
  "\0",
  "../../../../etc/passwd",
  "file:///etc/passwd",
  "__proto__",
  '["__proto__"]',
  "\ud800",
  "\u202Etxt.exe",
  "9".repeat(40),
];

/** Values of the other parameters with which a call gets as far as possible without leaving this machine. */
const ORDINARY: Readonly<Record<string, string>> = {
  id: "1",
  ids: "1",
  playlist_item_id: "1",
  task_id: "1",
  value: "1",
  query: ID,
  infohash: ID,
  title: "a title",
  name: "a name",
  category: "a category",
  type: "content",
  url: "http://127.0.0.1:9/list.m3u",
  update_interval: "0",
  update_now: "0",
  player_id: "tv",
  email: "ada@example.org",
  password: "correct horse",
};

interface Called {
  readonly response: Response;
  readonly text: string;
}

test("hostile text in any parameter is text, or is refused by name", async () => {
  const { path: stateDir, remove } = await temporaryDirectory();
  const ports = await loadPorts();
  const lines: string[] = [];
  const log = createLogger({ level: "debug", clock: ports.clock, write: (line) => void lines.push(line) });
  const engine = await createEngine({ ...ports, log }, {
    peerHost: "127.0.0.1",
    peerPort: 0,
    dht: false,
    lsd: false,
    stateDir,
    accessToken: TOKEN,
    startTimeoutMs: 20,
  });
  const server = await ports.http.serve({ host: "127.0.0.1", port: 0 }, (request, info) => engine.fetch(request, info));
  const url = `http://127.0.0.1:${server.address.port}`;
  const call = async (fields: Record<string, string>): Promise<Called> => {
    const body = new URLSearchParams({ token: TOKEN, ...fields });
    try {
      const response = await fetch(`${url}/server/api`, { method: "POST", body, signal: AbortSignal.timeout(30_000) });
      return { response, text: await response.text() };
    } catch (cause) {
      throw new Error(`no answer to ${JSON.stringify(fields)}`, { cause });
    }
  };
  try {
    await call({ method: "playlist_add_item", title: "kept", infohash: ID });
    const before = await tablesOf(stateDir);
    let calls = 0;
    for (const { name: method, params } of METHODS) {
      const fields = ["api_version", ...Object.keys(params.shape).filter((field) => field !== "file")];
      const ordinary = Object.fromEntries(fields.map((field) => [field, ORDINARY[field] ?? ""]));
      for (const field of fields) {
        // Each sign-in costs half a second of hashing, so only SQL is tried there.
        const texts = method === "sign_in" ? HOSTILE.slice(0, 3) : HOSTILE;
        await Promise.all(texts.map(async (text) => {
          assertHarmless(
            await call({ ...ordinary, method, [field]: text }),
            `${method}.${field} = ${JSON.stringify(text)}`,
          );
          calls++;
        }));
      }
    }
    assert(calls > 2000, `${calls} calls`);
    for (const text of HOSTILE) {
      const where = JSON.stringify(text);
      assertHarmless(await call({ method: text }), where);
      assertHarmless(await call({ method: "playlist_get", token: text }), where);
      assertHarmless(await call({ method: "get_status", [text]: text }), where);
    }
    const after = await tablesOf(stateDir);
    assertEquals(after.schema, before.schema);
    assertEquals([after.settings.filter((key) => key.includes(MARK)), after.accounts], [[], before.accounts]);
    assertEquals(after.integrity, "ok");
    assertEquals((await readdir(stateDir)).filter((file) => /passwd|windows/.test(file)), []);
    // Every event is one line, whatever it contains, and none reports a fault of the engine.
    for (const line of lines) assert(!/[\r\n\u2028\u2029\0]/.test(line.slice(0, -1)), line);
    assertEquals(lines.filter((line) => /^\S+ error /.test(line)), []);
  } finally {
    await engine.close();
    await server.close(0);
    await remove();
  }
});

function assertHarmless({ response, text }: Called, where: string): void {
  assert([200, 429].includes(response.status), `${where}: ${response.status}`);
  assertEquals([...response.headers.keys()].filter((name) => name.includes(MARK)), [], where);
  const type = response.headers.get("content-type") ?? "";
  assert(type.startsWith("application/json") && response.headers.get("x-content-type-options") === "nosniff", where);
  const body = JSON.parse(text);
  assertEquals(Object.keys(body), body.error === null ? ["result", "error"] : ["error"], where);
  assert(body.error === null || body.error.code !== 10, `${where}: ${text}`);
}

async function tablesOf(stateDir: string) {
  const client = await openDatabase(join(stateDir, "millrace.db"));
  const all = async (sql: string) => (await client.execute(sql)).map((row) => String(Object.values(row)[0]));
  try {
    return {
      schema: await all("SELECT sql FROM sqlite_master ORDER BY name"),
      settings: await all("SELECT key FROM settings"),
      accounts: await all("SELECT email FROM accounts"),
      integrity: (await all("PRAGMA integrity_check")).join("\n"),
    };
  } finally {
    client.close();
  }
}
