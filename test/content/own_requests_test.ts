import { test } from "node:test";
import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { OwnRequests } from "../../src/content/own-requests.ts";
import { createEngine } from "../../src/engine.ts";
import { serveWeb } from "../support/web.ts";

const FIELD = "millrace-request";

/** The marks on requests of `ports`, made by fetch and by the client for chosen addresses. */
async function marksOf(own: OwnRequests): Promise<Headers[]> {
  const seen: Headers[] = [];
  const ports = own.marked({
    fetch: (input: Request | URL | string, init?: RequestInit) => {
      seen.push(new Request(input, init).headers);
      return Promise.resolve(new Response());
    },
    httpClient: {
      open: ({ headers }) => {
        seen.push(headers);
        return Promise.resolve({ status: 200, headers: new Headers(), body: new ReadableStream<Uint8Array>() });
      },
    },
  });
  const url = "http://a.example/";
  await ports.fetch(url, { headers: { accept: "x" } });
  await ports.fetch(new Request(url, { headers: { accept: "x" } }));
  const { signal } = new AbortController();
  const headers = new Headers({ accept: "x" });
  await ports.httpClient.open({ url: new URL(url), address: "1.1.1.1", method: "GET", headers, signal });
  assertEquals([...headers.keys()], ["accept"]);
  return seen;
}

test("OwnRequests recognises requests that it marked, though each mark looks different", async () => {
  const own = new OwnRequests();
  const seen = await marksOf(own);
  const marks = seen.map((headers) => headers.get(FIELD)!);
  assertEquals(new Set(marks).size, 3);
  for (const headers of seen) {
    assertEquals(headers.get("accept"), "x");
    assert(await own.isOwn(headers));
    assert(!await new OwnRequests().isOwn(headers), "another engine's");
  }
});

test("OwnRequests does not accept forged, shortened or missing marks", async () => {
  const own = new OwnRequests();
  const [headers] = await marksOf(own);
  const mark = headers!.get(FIELD)!;
  const [nonce, signature] = mark.split(".");
  const changed = (text: string) => (text[0] === "0" ? "1" : "0") + text.slice(1);
  for (
    const value of [
      "",
      nonce!,
      `${nonce}.`,
      `.${signature}`,
      `${changed(nonce!)}.${signature}`,
      `${nonce}.${changed(signature!)}`,
      `${nonce}.${signature}0`,
      mark.toUpperCase().replace(/[^A-F]/g, "A"),
      `${mark}, ${mark}`,
      "x".repeat(10_000),
    ]
  ) assert(!await own.isOwn(new Headers({ [FIELD]: value })), value);
  assert(!await own.isOwn(new Headers()));
});

test("an engine refuses its own requests when somebody sends them back", async () => {
  const ports = await loadPorts({ log: { level: "error" } });
  const engine = await createEngine(ports, { peerHost: "127.0.0.1", peerPort: 0, dht: false, lsd: false });
  const statuses: number[] = [];
  // A proxy that hands on every field.
  const proxy = await serveWeb((request, response) => {
    const headers = new Headers(request.headers as Record<string, string>);
    headers.set("host", "127.0.0.1:6878");
    void engine.fetch(new Request("http://127.0.0.1:6878/server/api?method=get_api_access_token", { headers }))
      .then(async (answer) => {
        statuses.push(answer.status);
        response.writeHead(200).end(await answer.text());
      });
  });
  try {
    for (
      const [method, name] of [["get_media_files", "url"], ["analyze_content", "query"], ["parse_m3u_playlist", "url"]]
    ) {
      const query = new URLSearchParams({ method: method!, [name!]: `${proxy.base}/` });
      await (await engine.fetch(new Request(`http://127.0.0.1:6878/server/api?${query}`))).text();
      assertEquals(statuses.splice(0), [508], method);
    }
    const query = new URLSearchParams({ url: `${proxy.base}/a.torrent`, format: "json" });
    const started = await engine.fetch(new Request(`http://127.0.0.1:6878/engine/getstream?${query}`));
    assertNotEquals((await started.json()).error, null);
    assertEquals(statuses.splice(0), [508]);
  } finally {
    await proxy.close();
    await engine.close();
  }
});
