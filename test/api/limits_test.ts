/** Limits of bodies, fields and parts over real HTTP; the engine works on after each. */
import { request as httpRequest } from "node:http";
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { TOKEN, withServed } from "./support.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
const FORM = "application/x-www-form-urlencoded";

interface Told {
  readonly status: number;
  readonly code: number | null;
  /** Bytes of the body that were taken before the answer came. */
  readonly sentBytes: number;
}

/** A client that is still sending when the engine hangs up may lose its answer: then it asks again, this often. */
const ATTEMPTS = 3;

/** What `ask` resolves to, asked again when the answer was lost. */
async function answered<T>(ask: () => Promise<T>): Promise<T> {
  for (let attempt = 1;; attempt++) {
    try {
      return await ask();
    } catch (error) {
      const { code, cause } = error as { code?: string; cause?: unknown };
      if (attempt === ATTEMPTS || !/EPIPE|ECONNRESET|reset by peer|broken pipe/i.test(`${code} ${cause}`)) throw error;
    }
  }
}

/**
 * Posts `chunk` again and again until the whole body is `bytes` long or the answer is there. A length is declared only
 * when asked for: without one the engine has to count.
 */
function post(url: string, type: string, chunk: Uint8Array, bytes: number, declared: boolean): Promise<Told> {
  return new Promise((resolve, reject) => {
    const { hostname, port, pathname, search } = new URL(url);
    const headers = { "content-type": type, ...(declared ? { "content-length": String(bytes) } : {}) };
    let sentBytes = 0;
    let answered = false;
    const request = httpRequest({ hostname, port, path: pathname + search, method: "POST", headers, agent: false });
    request.on("response", (response) => {
      answered = true;
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (part) => text += part);
      response.on("end", () => {
        request.destroy();
        resolve({ status: response.statusCode ?? 0, code: JSON.parse(text).error?.code ?? null, sentBytes });
      });
    });
    // The far end may hang up on a body that it does not want, after its answer.
    request.on("error", (error) => answered || reject(error));
    const send = () => {
      while (!answered && sentBytes < bytes) {
        const part = chunk.subarray(0, Math.min(chunk.length, bytes - sentBytes));
        sentBytes += part.length;
        if (!request.write(part)) return void request.once("drain", send);
      }
      if (!answered) request.end();
    };
    send();
  });
}

test("bodies over their limit get 413, declared or not, and reading stops", async () => {
  await withServed(async ({ url }) => {
    const api = `${url}/server/api?method=get_media_files`;
    const letters = new Uint8Array(64 * KIB).fill(97);
    const boundary = new TextEncoder().encode(
      '--b\r\ncontent-disposition: form-data; name="file"; filename="x"\r\n\r\n',
    );
    const parts = new Uint8Array(64 * KIB).fill(97);
    parts.set(boundary);
    const table: [string, string, Uint8Array, number][] = [
      ["form", FORM, letters, MIB],
      ["transport file", "application/x-bittorrent", letters, 17 * MIB],
      ["no type", "", letters, 17 * MIB],
      ["multipart", "multipart/form-data; boundary=b", parts, 17 * MIB],
    ];
    for (const [what, type, chunk, limit] of table) {
      for (const declared of [true, false]) {
        const told = await answered(() => post(api, type, chunk, limit + 1, declared));
        assertEquals([told.status, told.code], [413, 3], `${what} ${declared}`);
      }
      // Do not wait for a body that has no end.
      const endless = await answered(() => post(api, type, chunk, 2 ** 40, false));
      assertEquals([endless.status, endless.code], [413, 3], what);
      assert(endless.sentBytes < limit + 32 * MIB, `${what}: ${endless.sentBytes} bytes`);
    }
    assertEquals((await (await fetch(`${url}/server/api?method=get_status`)).json()).error, null);
  });
});

test("fields up to their limit are taken, longer and more are answered 413", async () => {
  await withServed(async ({ url }) => {
    const tell = async (body: BodyInit) => {
      const response = await fetch(`${url}/server/api`, { method: "POST", body });
      const { error } = await response.json();
      return [response.status, error?.code ?? null];
    };
    const form = (fields: Record<string, string>) => new URLSearchParams({ method: "get_status", ...fields });
    const multipart = (count: number, more: Record<string, string> = {}) => {
      const body = new FormData();
      for (const [name, value] of Object.entries({ method: "get_status", ...more })) body.append(name, value);
      for (let i = 0; i < count; i++) body.append("x", "1");
      return body;
    };
    const table: [string, BodyInit, [number, number | null]][] = [
      ["long", form({ x: "y".repeat(64 * KIB) }), [200, null]],
      ["too long", form({ x: "y".repeat(64 * KIB + 1) }), [413, 3]],
      ["long part", multipart(0, { x: "y".repeat(64 * KIB) }), [200, null]],
      ["too long a part", multipart(0, { x: "y".repeat(64 * KIB + 1) }), [413, 3]],
      ["too long a name", form({ ["n".repeat(64 * KIB + 1)]: "1" }), [413, 3]],
      ["many", new URLSearchParams(`method=get_status${"&x=1".repeat(9_999)}`), [200, null]],
      ["too many", new URLSearchParams(`method=get_status${"&x=1".repeat(10_000)}`), [413, 3]],
      ["many parts", multipart(9_999), [200, null]],
      ["too many parts", multipart(10_000), [413, 3]],
    ];
    for (const [what, body, wanted] of table) assertEquals(await answered(() => tell(body)), wanted, what);
  });
});

test("malformed multipart bodies are answered code 3, and the engine lives on", async () => {
  await withServed(async ({ url }) => {
    const head = 'content-disposition: form-data; name="method"\r\n\r\n';
    const bodies: [string, string][] = [
      ["multipart/form-data", "--b\r\n\r\n--b--"],
      ["multipart/form-data; boundary=", "----"],
      ["multipart/form-data; boundary=b", ""],
      ["multipart/form-data; boundary=b", "--b"],
      ["multipart/form-data; boundary=b", `--b\r\n${head}get_status`],
      ["multipart/form-data; boundary=b", `--b\r\ncontent-disposition: form-data\r\n\r\nx\r\n--b--\r\n`],
      ["multipart/form-data; boundary=b", `--c\r\n${head}get_status\r\n--c--\r\n`],
      ["multipart/form-data; boundary=b", `--b\r\n${"x: y\r\n".repeat(10_000)}\r\nx\r\n--b--\r\n`],
      ["multipart/form-data; boundary=b", "\0".repeat(1000)],
      [`multipart/form-data; boundary=${"b".repeat(1000)}`, `--${"b".repeat(1000)}\r\n`],
    ];
    for (const [type, body] of bodies) {
      for (const method of ["get_media_files", "playlist_import"]) {
        const target = `${url}/server/api?method=${method}&token=${TOKEN}`;
        const response = await fetch(target, { method: "POST", body, headers: { "content-type": type } });
        const { result, error } = await response.json();
        assertEquals([response.status, result], [200, undefined], `${method} ${type} ${body.slice(0, 60)}`);
        assert(
          error.code === 2 || error.code === 3,
          `${method} ${type} ${body.slice(0, 60)}: ${JSON.stringify(error)}`,
        );
      }
    }
    assertEquals((await (await fetch(`${url}/server/api?method=get_status`)).json()).error, null);
  });
});

test("nothing of a body is waited for when the query says already that the call is refused", async () => {
  await withServed(async ({ url }) => {
    const table: [string, string, number][] = [
      ["an unknown method", "method=nonsense", 1],
      ["a wrong token", "method=playlist_import&token=wrong", 4],
      ["a wrong token in an upload", "method=playlist_add_item&token=wrong", 4],
    ];
    for (const [what, query, code] of table) {
      const told = await post(
        `${url}/server/api?${query}`,
        "audio/x-mpegurl",
        new Uint8Array(64 * KIB),
        2 ** 40,
        false,
      );
      assertEquals([told.status, told.code], [200, code], what);
    }
  });
});
