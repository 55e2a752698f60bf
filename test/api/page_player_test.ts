/** Which pages may play what others send. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { ADDRESSES, withEngine } from "./support.ts";

const OWN = "http://192.168.7.5:6878";

test("only a page of the engine's own listens and reports, and its reports are read with care", async () => {
  await withEngine(async ({ engine, call }) => {
    const post = (
      path: string,
      headers: Record<string, string>,
      from: keyof typeof ADDRESSES = "intranet",
      method = "POST",
    ) =>
      engine.fetch(new Request(`${OWN}${path}`, { method, headers }), { remote: { host: ADDRESSES[from], port: 1 } });
    const own = { origin: OWN };
    for (
      const headers of [{}, { origin: "https://page.example" }, { "sec-fetch-site": "cross-site" }, {
        "user-agent": "Mozilla/5.0",
      }]
    ) {
      assertEquals((await post("/webui/player", headers)).status, 403, JSON.stringify(headers));
      assertEquals((await post("/webui/player/report?seat=x&turn=1&state=playing", headers)).status, 403);
    }
    assertEquals((await post("/webui/player", own, "internet")).status, 403);
    assertEquals((await post("/webui/player", {}, "intranet", "GET")).status, 404);

    const joined = await post("/webui/player", own);
    assertEquals([joined.status, joined.headers.get("content-type")], [200, "application/x-ndjson"]);
    const reader = joined.body!.getReader();
    const { seat } = JSON.parse(new TextDecoder().decode((await reader.read()).value));
    const { result } = await call("get_available_players");
    assertEquals(result.players.map(({ name, type }: { name: string; type: string }) => [name, type]), [
      ["Web page on 192.168.7.77", "proxy"],
    ]);
    const reported = async (query: string) => (await post(`/webui/player/report?${query}`, own)).status;
    assertEquals(await reported(`seat=${seat}&turn=1&state=playing&position=1&duration=x`), 204);
    assertEquals(await reported(`seat=${seat}&turn=1&state=dancing`), 400);
    assertEquals(await reported(`seat=${seat}&turn=-1&state=playing`), 400);
    assertEquals(await reported("seat=unknown&turn=1&state=playing"), 404);
    await reader.cancel();
    assertEquals((await call("get_available_players")).result.players, []);
  });
});

test("other engines reach the two steps of casting and nothing else; no page of any origin does", async () => {
  await withEngine(async ({ engine }) => {
    const post = async (path: string, headers: Record<string, string>, body = "{}") => {
      const all = { "content-type": "application/json", ...headers };
      const request = new Request(`${OWN}${path}`, { method: "POST", headers: all, body });
      const response = await engine.fetch(request, { remote: { host: ADDRESSES.intranet, port: 1 } });
      return [response.status, (await response.text()).slice(0, 60)];
    };
    const pages = [{ origin: OWN }, { origin: "https://page.example" }, { "sec-fetch-site": "same-origin" }];
    for (const headers of [...pages, { referer: "https://page.example/" }, { "content-type": "text/plain" }]) {
      assertEquals(await post("/cast/hello", headers), [403, "this is for other engines\n"], JSON.stringify(headers));
      assertEquals(await post("/cast/command", headers), [403, "this is for other engines\n"]);
    }
    assertEquals((await post("/cast/hello", {}))[0], 400);
    assertEquals((await post("/cast/command", {}, "x".repeat(20_000)))[0], 413);
    const [status, text] = await post("/cast/hello", {}, JSON.stringify({ challenge: "0".repeat(32) }));
    assertEquals([status, Object.keys(JSON.parse(`${text}`.replace(/,"signature.*|$/, "}")))], [200, ["nonce"]]);
  }, { playerDiscovery: true });
  await withEngine(async ({ engine }) => {
    const request = new Request(`${OWN}/cast/hello`, { method: "POST", body: "{}" });
    assertEquals((await engine.fetch(request, { remote: { host: ADDRESSES.intranet, port: 1 } })).status, 404);
  });
});
