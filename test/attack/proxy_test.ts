/** Callers from the Internet through a real reverse proxy on the engine's machine, with and without its word for it. */
import { createServer, type IncomingHttpHeaders, request as httpRequest } from "node:http";
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { listen, stop } from "../support/web.ts";
import { assertHarmless, type Target, withTarget } from "./support/target.ts";

/** A reverse proxy in front of `target`; `change` turns the header fields it received into those it sends. */
async function proxyTo(target: Target, change: (headers: IncomingHttpHeaders) => Record<string, unknown>) {
  const { hostname, port } = new URL(target.url);
  const server = createServer((request, response) => {
    const headers = change(request.headers) as Record<string, string>;
    const onward = httpRequest({ hostname, port, path: request.url, method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    request.pipe(onward);
  });
  const url = `http://127.0.0.1:${await listen(server)}`;
  return { url, close: () => stop(server) };
}

/** What only programs on the engine's own machine may get or do. */
async function stolen(url: string, token: string, headers: Record<string, string> = {}): Promise<string[]> {
  const found: string[] = [];
  const text = async (path: string) => {
    const answer = await fetch(url + path, { headers });
    return answer.status === 200 ? await answer.text() : `refused ${await answer.text()}`;
  };
  if ((await text("/server/api?method=get_api_access_token")).includes(token)) found.push("token");
  if ((await text("/engine/playlist.m3u")).includes("#EXTM3U")) found.push("playlist");
  const inside = encodeURIComponent(`${url}/webui/api/service?method=get_version`);
  const private_ = await text(`/server/api?method=analyze_content&query=${inside}`);
  if (!/private network|refused|not allowed/.test(private_)) found.push(`private fetch: ${private_}`);
  const opened = await text("/server/api?method=set_allow_remote_access&value=1&token=wrong");
  if (opened.includes('"ok"')) found.push("access");
  return found;
}

/** A proxy that adds nothing must make nobody local; the token opens what the address otherwise would. */
async function assertNobodyLocal(target: Target): Promise<void> {
  const proxy = await proxyTo(target, ({ host: _host, ...got }) => got);
  const named = await proxyTo(target, (got) => ({ ...got, host: "media.example" }));
  try {
    assertEquals(await stolen(proxy.url, target.token()), []);
    assertEquals(await stolen(named.url, target.token()), []);
    const open = `${target.url}/server/api?method=set_allow_remote_access&value=1&token=${target.token()}`;
    assertEquals((await (await fetch(open)).json()).result, "ok");
    assertEquals(await stolen(proxy.url, target.token()), []);
    const answer = await fetch(`${proxy.url}/server/api?method=get_status`);
    assertEquals((await answer.json()).error, null);
  } finally {
    await Promise.all([proxy.close(), named.close()]);
  }
}

/** The engine must recognise its own requests when a proxy that passes on everything brings them back. */
async function assertKnowsItsOwn(target: Target): Promise<void> {
  const seen: IncomingHttpHeaders[] = [];
  const proxy = await proxyTo(target, ({ host: _host, ...got }) => {
    seen.push(got);
    return got;
  });
  try {
    const inside = encodeURIComponent(`${proxy.url}/server/api?method=get_api_access_token`);
    for (const call of [`get_media_files&url=${inside}`, `analyze_content&query=${inside}`]) {
      const text = await (await fetch(`${target.url}/server/api?method=${call}`)).text();
      assert(!text.includes(target.token()), text);
    }
    // A torrent's tracker may be anywhere for callers on this machine, too.
    const tracker = encodeURIComponent(`${proxy.url}/announce`);
    const magnet = encodeURIComponent(`magnet:?xt=urn:btih:${"a".repeat(40)}&tr=${tracker}`);
    await fetch(`${target.url}/engine/getstream?format=json&magnet=${magnet}`, { signal: AbortSignal.timeout(500) })
      .then((answer) => answer.text(), () => {});
    assert(seen.length >= 3, `${seen.length} requests`);
    const again = await Promise.all(
      seen.map((headers) =>
        fetch(`${target.url}/engine/playlist.m3u`, {
          headers: { "millrace-request": String(headers["millrace-request"]) },
        })
      ),
    );
    assertEquals(again.map(({ status }) => status), again.map(() => 508));
    for (const answer of again) await answer.body?.cancel();
    assertEquals(new Set(seen.map((headers) => headers["millrace-request"])).size, seen.length);
  } finally {
    await proxy.close();
  }
}

/** Each way in which a proxy speaks for a caller of the Internet. */
const SPEAKING: Readonly<Record<string, (got: IncomingHttpHeaders) => Record<string, unknown>>> = {
  "X-Forwarded-For": (got) => ({ ...got, "x-forwarded-for": "8.8.8.8" }),
  "appended to what the caller says": (got) => ({
    ...got,
    "x-forwarded-for": [got["x-forwarded-for"], "8.8.8.8"].filter((hop) => hop !== undefined).join(", "),
  }),
  "Forwarded": (got) => ({ ...got, forwarded: "for=8.8.8.8;proto=https" }),
  "X-Real-IP": (got) => ({ ...got, "x-real-ip": "8.8.8.8" }),
};

/** What a caller sends to be taken for the engine's own machine. */
const LIES: readonly Record<string, string>[] = [
  {},
  { "x-forwarded-for": "127.0.0.1" },
  { forwarded: "for=127.0.0.1" },
  { forwarded: 'for="[::1]"' },
  { "x-real-ip": "127.0.0.1" },
  { "x-forwarded-host": "evil.example", "x-forwarded-proto": "http" },
];

test("an untrusted proxy gives nobody the rights of this machine, not even the engine's own requests", async () => {
  await withTarget(async (target) => {
    const fields: Record<string, string>[] = [
      { "x-forwarded-for": "8.8.8.8" },
      { forwarded: "for=8.8.8.8" },
      { via: "1.1 proxy" },
      { "x-real-ip": "8.8.8.8" },
      { "cf-connecting-ip": "8.8.8.8" },
      { "x-forwarded-proto": "https" },
    ];
    await assertHarmless(target, async () => {
      for (const field of fields) {
        const proxy = await proxyTo(target, (got) => ({ ...got, ...field }));
        try {
          assertEquals(await stolen(proxy.url, target.token()), [], JSON.stringify(field));
          const answer = await fetch(`${proxy.url}/server/api?method=get_status`);
          assertEquals(answer.status, 403);
          assertMatch((await answer.json()).error.message, /--trust-proxy/);
        } finally {
          await proxy.close();
        }
      }
    });
    // Programs on this machine go on as before.
    const own = await fetch(`${target.url}/server/api?method=get_api_access_token`);
    assertEquals((await own.json()).result.token, target.token());
    await assertKnowsItsOwn(target);
  });
});

test("a trusted proxy speaks for its callers, whatever they say themselves", async () => {
  await withTarget(async (target) => {
    for (const [name, change] of Object.entries(SPEAKING)) {
      const proxy = await proxyTo(target, change);
      try {
        for (const lie of LIES) {
          assertEquals(await stolen(proxy.url, target.token(), lie), [], `${name} ${JSON.stringify(lie)}`);
          const answer = await fetch(`${proxy.url}/server/api?method=get_status`, { headers: lie });
          await answer.body?.cancel();
          assertEquals(answer.status, 403, `${name} ${JSON.stringify(lie)}`);
        }
      } finally {
        await proxy.close();
      }
    }
    // Callers can pretend to be neighbours through a proxy that passes on their headers, but still not to be this machine.
    const careless = await proxyTo(target, (got) => ({ ...got }));
    try {
      for (const lie of LIES) assertEquals(await stolen(careless.url, target.token(), lie), []);
    } finally {
      await careless.close();
    }
    await assertNobodyLocal(target);
  }, ["--trust-proxy", "127.0.0.1"]);
});

test("with --public-url a proxy that adds no header makes nobody local", async () => {
  await withTarget(assertNobodyLocal, ["--public-url", "https://media.example/tv"]);
});
