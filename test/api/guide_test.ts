/** Programme guides over HTTP: given, read, asked for, handed on to players. */
import { gunzipSync } from "node:zlib";
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { readXmltv, type XmltvEvent } from "../../src/playlist/guide/xmltv-read.ts";
import { writeXmltvTime } from "../../src/playlist/guide/xmltv-time.ts";
import { type Any, useListsApi } from "./lists-support.ts";
import { TOKEN } from "./support.ts";

const { served, source, post, call, ended } = useListsApi();

const NOW_S = Math.floor(Date.now() / 1000);
const time = (hours: number) => writeXmltvTime(NOW_S + hours * 3600);

/** `a.uk` is known by its id, Beta by its name, the last one not at all. */
const GUIDE = `<?xml version="1.0"?><tv>
<channel id="a.uk"><display-name>Anything</display-name></channel>
<channel id="beta"><display-name>Beta</display-name></channel>
<channel id="other"><display-name>Other</display-name></channel>
<programme start="${time(-1)}" stop="${time(1)}" channel="a.uk">
  <title lang="en">News &amp; more</title><title lang="de">Nachrichten</title><desc lang="en">All of it</desc>
  <date>2026</date><category>News</category><icon src="http://h/n.png"/><episode-num system="onscreen">S01E02</episode-num>
</programme>
<programme start="${time(1)}" stop="${time(2)}" channel="a.uk"><title>Weather</title></programme>
<programme start="${time(-1)}" stop="${time(1)}" channel="beta"><title>Film</title></programme>
<programme start="${time(-1)}" stop="${time(1)}" channel="other"><title>Nobody</title></programme>
</tv>`;

const hash = (digit: number) => String(digit).repeat(40);

async function eventsOf(bytes: Uint8Array): Promise<XmltvEvent[]> {
  const events: XmltvEvent[] = [];
  for await (
    const some of readXmltv((async function* () {
      yield bytes;
    })())
  ) events.push(...some);
  return events;
}

test("guides that callers give say what is on, over the API and as XMLTV", async () => {
  const list = `#EXTM3U
#EXTINF:-1 tvg-id="a.uk",Alpha
magnet:?xt=urn:btih:${hash(1)}
#EXTINF:-1 tvg-id="a.uk" tvg-shift="1",Alpha +1
magnet:?xt=urn:btih:${hash(2)}
#EXTINF:-1,Beta HD
magnet:?xt=urn:btih:${hash(3)}
#EXTINF:-1 tvg-id="unknown",Gamma
magnet:?xt=urn:btih:${hash(4)}
`;
  const { result } = await post("playlist_import", {}, { body: list });
  assertEquals((await ended(result.task_id)).state, "done");
  source.behaviour.text = GUIDE;
  const id = await call("epg_source_add", { url: `${source.url}/guide.xml`, update_interval: "0", update_now: "0" });
  await call("epg_source_update", { id: String(id) });
  const { sources: [guide] } = await call("epg_sources");
  assertEquals([guide.id, guide.channels, guide.programmes, guide.last_error, guide.from_list], [id, 3, 3, "", false]);

  const { playlist } = await call("playlist_get", { show_epg: "1" });
  const ids = new Map<string, number>(playlist.map((item: Any) => [item.title, item.id]));
  const on = playlist.map(({ title, epg }: Any) => [title, epg.now?.title ?? null, epg.next?.title ?? null]);
  assertEquals(on, [
    ["Alpha", "News & more", "Weather"],
    ["Alpha +1", "News & more", "Weather"],
    ["Beta HD", "Film", null],
    ["Gamma", null, null],
  ]);
  const { results: [found] } = await call("search", { query: "alpha", group_by_channels: "1", show_epg: "1" });
  assertEquals(found.epg.now, {
    start: NOW_S - 3600,
    stop: NOW_S + 3600,
    language: "en",
    title: "News & more",
    subtitle: "",
    description: "All of it",
    categories: ["News"],
    icon: "http://h/n.png",
    episode: "S01E02",
    year: 2026,
  });

  const asked = { playlist_item_id: [...ids.values()].join(), from: String(NOW_S - 60), language: "de" };
  const { channels } = await call("epg_get", asked);
  const shown = channels.map((one: Any) => [
    one.playlist_item_id,
    one.programmes.map(({ title, start }: Any) => [title, (start - NOW_S) / 3600]),
  ]);
  assertEquals(shown, [
    [ids.get("Alpha"), [["Nachrichten", -1], ["Weather", 1]]],
    [ids.get("Alpha +1"), [["Nachrichten", 0], ["Weather", 2]]],
    [ids.get("Beta HD"), [["Film", -1]]],
    [ids.get("Gamma"), []],
  ]);

  const of = async (params: Record<string, string>) =>
    (await call("epg_get", params)).channels.map((one: Any) => one.playlist_item_id);
  assertEquals(await of({ infohash: hash(3) }), [ids.get("Beta HD")]);
  assertEquals(await of({ infohash: hash(9) }), []);
  assertEquals((await post("epg_get", {})).error?.code, 2);

  const m3u = await (await fetch(`${served.url}/engine/playlist.m3u`)).text();
  assertMatch(m3u, new RegExp(`^#EXTM3U url-tvg="${served.url}/engine/xmltv.xml"\n`));
  const listed = [...m3u.matchAll(/ tvg-id="([^"]*)"/g)].map(([, one]) => one!);
  assertEquals(listed, ["a.uk", "a.uk", "beta", "unknown"]);
  const response = await fetch(`${served.url}/engine/xmltv.xml`);
  assertEquals(response.headers.get("content-type"), "application/xml; charset=utf-8");
  const plain = new Uint8Array(await response.arrayBuffer());
  const packed = await (await fetch(`${served.url}/engine/xmltv.xml.gz`)).arrayBuffer();
  assertEquals(new Uint8Array(gunzipSync(packed)), plain);
  const events = await eventsOf(plain);
  assertEquals(events.filter(({ kind }) => kind === "channel"), [
    { kind: "channel", id: "a.uk", names: ["Alpha", String(ids.get("Alpha"))], icon: "" },
    { kind: "channel", id: "beta", names: ["Beta HD", String(ids.get("Beta HD"))], icon: "" },
  ]);
  const programmes = events.filter((event) => event.kind === "programme");
  assertEquals(programmes.map(({ channel, start, texts }) => [channel, start - NOW_S, texts.map((one) => one.title)]), [
    ["a.uk", -3600, ["News & more", "Nachrichten"]],
    ["a.uk", 3600, ["Weather"]],
    ["beta", -3600, ["Film"]],
  ]);
  const [first] = programmes;
  const { episode, year, categories, icon } = first!;
  assertEquals([episode, year, categories, icon], ["S01E02", 2026, ["News"], "http://h/n.png"]);

  await call("epg_source_delete", { id: String(id) });
  assertEquals((await call("epg_get", asked)).channels[0].programmes, []);
  assert(!(await (await fetch(`${served.url}/engine/playlist.m3u`)).text()).includes("xmltv.xml"));
});

test("a guide that cannot be fetched says why, and what no caller may name is refused", async () => {
  source.behaviour.status = 503;
  const id = await call("epg_source_add", { url: `${source.url}/guide.xml`, update_now: "0" });
  const { error } = await post("epg_source_update", { id: String(id) });
  assertMatch(error!.message, /503/);
  assertMatch((await call("epg_sources")).sources[0].last_error, /503/);
  source.behaviour.status = null;
  assertEquals((await post("epg_source_add", { url: "ftp://h/guide.xml" })).error?.code, 3);
  assertEquals((await post("epg_source_delete", { id: "99" })).error?.code, 5);
  await call("epg_source_delete", { id: String(id) });
});

test("/engine/xmltv.xml needs what the playlist needs", async () => {
  const answer = await fetch(`${served.url}/engine/xmltv.xml`, { headers: { origin: "http://evil.test" } });
  assertEquals(answer.status, 403);
  await answer.body?.cancel();
  const withToken = await fetch(`${served.url}/engine/xmltv.xml?token=${TOKEN}`);
  assertMatch(
    await withToken.text(),
    /^<\?xml .*\n<!DOCTYPE tv SYSTEM "xmltv.dtd">\n<tv generator-info-name="millrace">\n<\/tv>\n$/,
  );
});
