/** A UPnP control point that we did not write (GUPnP), on another machine of the network, finds the library and plays from it. */
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { fromHex } from "../../src/bytes/hex.ts";
import { createEngine, type Engine } from "../../src/engine.ts";
import { elementsOf, readXml, textIn } from "../../src/upnp/xml.ts";
import type { HttpServer } from "../../src/ports.ts";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { type SeededFiles, seedFiles } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { type Program, start } from "../support/process.ts";
import { until } from "../support/until.ts";
import { type OtherMachine, otherMachine } from "./support/other-machine.ts";

const TOKEN = "0123456789abcdef".repeat(4);
const CONTENT_DIRECTORY = "urn:schemas-upnp-org:service:ContentDirectory:1";
const CONNECTION_MANAGER = "urn:schemas-upnp-org:service:ConnectionManager:1";
/** More than two pages. */
const CHANNELS = 450;

let machine: OtherMachine;
let season: SeededFiles;
let film: SeededFiles;
let engine: Engine;
let server: HttpServer;
let point: Program;
let device: string;
let orders = 0;

before(async () => {
  machine = await otherMachine(77);
  const ports = await loadPorts();
  season = await seedFiles([
    { path: "Episode 10.mp4", bytes: clip("mp4-24fps.mp4") },
    { path: "Episode 2.mp4", bytes: clip("mp4-end.mp4") },
    { path: "notes.txt", bytes: new TextEncoder().encode("nothing to play") },
  ], { name: "Season <1>" });
  film = await seedFiles([{ path: "film.ts", bytes: clip("ts-188.ts") }]);
  const fronts = ["dlna"] as const;
  engine = await createEngine(ports, {
    ...{ fronts, peerHost: "127.0.0.1", peerPort: 0, dht: false, lsd: false, accessToken: TOKEN },
  });
  server = await ports.http.serve({ host: machine.ownHost, port: 0 }, (request, info) => engine.fetch(request, info));
  for (const { metainfo, magnet } of [season, film]) {
    engine.swarms.acquire({ metainfo, magnet: parseMagnet(magnet) });
  }
  await add({ title: "Season & <One>", file: new File([season.transportFile.slice()], "season.torrent") });
  await add({ title: 'Film "zero" \u0001 é', infohash: film.metainfo.infohashHex, category: "Films & more" });
  const list = Array.from({ length: CHANNELS }, (_, n) => {
    return `#EXTINF:-1 group-title="News",Channel ${n}\nmagnet:?xt=urn:btih:${String(n).padStart(40, "0")}\n`;
  });
  const { task_id: task } = await api("playlist_import", { file: new File([`#EXTM3U\n${list.join("")}`], "list.m3u") });
  await until("the list is imported", async () => (await api("get_task", { task_id: String(task) })).state === "done");
  point = start(machine.command[0]!, [
    ...machine.command.slice(1),
    "/usr/bin/python3",
    new URL("./support/control_point.py", import.meta.url).pathname,
    machine.interfaceName,
  ]);
});
after(async () => {
  await point?.stop();
  await engine?.close();
  await server?.close(0);
  await season?.close();
  await film?.close();
  await machine?.remove();
});

async function api(method: string, params: Record<string, string | File>) {
  const body = new FormData();
  for (const [name, value] of Object.entries({ token: TOKEN, ...params })) body.set(name, value);
  const query = new URLSearchParams({ method, token: TOKEN });
  const request = new Request(`http://127.0.0.1/server/api?${query}`, { method: "POST", body });
  const { result, error } = await (await engine.fetch(request)).json();
  assertEquals(error, null, method);
  return result;
}
const add = (params: Record<string, string | File>) => api("playlist_add_item", params);

/** Makes the control point do something, and resolves with the result. */
async function order(what: Record<string, unknown>) {
  const id = ++orders;
  point.child.stdin!.write(`${JSON.stringify({ id, ...what })}\n`);
  const [, rest] = await point.line(new RegExp(`^\\{"id": ${id}, (.*)\\}$`));
  return JSON.parse(`{${rest}}`);
}
async function call(
  action: string,
  args: Record<string, string>,
  results: readonly string[],
  service = CONTENT_DIRECTORY,
) {
  return await order({ device, service, action, args, results });
}
const get = (url: string, headers: Record<string, string> = {}, method = "GET") => order({ url, headers, method });

/** An entry as the control point got it. */
interface Entry {
  readonly id: string;
  readonly title: string;
  readonly url: string;
  readonly protocol: string;
}
const LIST = ["Result", "NumberReturned", "TotalMatches", "UpdateID"];
function entriesOf({ result, ...failed }: { result: Record<string, string> }) {
  assert(result, JSON.stringify(failed));
  const root = readXml(result["Result"]!);
  const entries = ["container", "item"].flatMap((name) => [...elementsOf(root, name)]).map((element): Entry => ({
    id: element.attributes["id"]!,
    title: textIn(element, "title"),
    url: textIn(element, "res"),
    protocol: [...elementsOf(element, "res")][0]?.attributes["protocolInfo"] ?? "",
  }));
  assertEquals(entries.length, Number(result["NumberReturned"]));
  return { entries, total: Number(result["TotalMatches"]) };
}
const PAGE = { Filter: "*", StartingIndex: "0", RequestedCount: "0", SortCriteria: "" };
async function browse(id: string, more: Record<string, string> = {}) {
  return entriesOf(await call("Browse", { ObjectID: id, BrowseFlag: "BrowseDirectChildren", ...PAGE, ...more }, LIST));
}
async function search(criteria: string, id = "0") {
  return entriesOf(await call("Search", { ContainerID: id, SearchCriteria: criteria, ...PAGE }, LIST));
}

test("a control point finds the media server by its search, or by its advertisement", async () => {
  engine.servedAt(server.address);
  const [, udn, name] = await point.line(/"available": "(uuid:[^"]+)", "name": "([^"]+)"/);
  assertEquals(name, `millrace on ${machine.ownHost}`);
  device = udn!;
});

test("it browses the lists, categories in pages, and the files of a torrent", async () => {
  const { entries: root } = await browse("0");
  assertEquals(root.map(({ title }) => title), ["Now playing", "All", "Favourites", "Films & more", "News"]);
  const news = root.at(-1)!.id;
  const titles: string[] = [];
  for (let total = Infinity; titles.length < total;) {
    const page = await browse(news, { StartingIndex: String(titles.length) });
    assert(page.entries.length > 0 && page.entries.length <= 200);
    titles.push(...page.entries.map(({ title }) => title));
    total = page.total;
  }
  assertEquals(titles, Array.from({ length: CHANNELS }, (_, n) => `Channel ${n}`));
  const three = await browse(news, { StartingIndex: "448", RequestedCount: "3" });
  assertEquals([three.total, three.entries.map(({ title }) => title)], [CHANNELS, ["Channel 448", "Channel 449"]]);

  const { entries: all } = await browse("all", { RequestedCount: "2" });
  assertEquals(all.map(({ title }) => title), ["Season & <One>", 'Film "zero" \ufffd é']);
  const { entries: episodes } = await browse(all[0]!.id);
  assertEquals(episodes.map(({ title }) => title), ["Episode 2", "Episode 10"]);
  const metadata = { ObjectID: episodes[1]!.id, BrowseFlag: "BrowseMetadata", ...PAGE };
  assertEquals(entriesOf(await call("Browse", metadata, LIST)).entries, [episodes[1]!]);
  const refused = await call("Browse", { ...metadata, ObjectID: "all/i999" }, LIST);
  assertEquals(refused.code, 701);
});

test("it searches titles", async () => {
  const { result: { SearchCaps } } = await call("GetSearchCapabilities", {}, ["SearchCaps"]);
  assertEquals(SearchCaps, "dc:title,upnp:class");
  const found = await search('upnp:class derivedfrom "object.item.videoItem" and dc:title contains "CHANNEL 44"');
  assertEquals(
    found.entries.map(({ title }) => title),
    [44, ...Array.from({ length: 10 }, (_, n) => 440 + n)].map((n) => {
      return `Channel ${n}`;
    }),
  );
  assertEquals((await search('upnp:class derivedfrom "object.item.audioItem"')).total, 0);
  assertEquals((await call("Search", { ContainerID: "0", SearchCriteria: "(", ...PAGE }, LIST)).code, 708);
});

test("a control point reads the items it browsed, whole and in ranges, with DLNA's header fields", async () => {
  const { entries: [entry] } = await search('dc:title contains "zero"');
  assertMatch(entry!.protocol, /^http-get:\*:video\/mpeg:DLNA\.ORG_OP=11;DLNA\.ORG_CI=0;DLNA\.ORG_FLAGS=0170{29}$/);
  assert(entry!.url.startsWith(`http://${machine.ownHost}:${server.address.port}/`), entry!.url);
  const dlna = { "getcontentFeatures.dlna.org": "1", "transferMode.dlna.org": "Streaming" };
  const head = await get(entry!.url, dlna, "HEAD");
  const whole = await get(entry!.url, dlna);
  const ts = fromHex(whole.body);
  assertEquals([whole.status, ts.length % 188, ts[0]], [200, 0, 0x47]);
  for (const { headers } of [head, whole]) {
    const fields = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
    assertEquals(fields["contentfeatures.dlna.org"], entry!.protocol.split(":")[3]);
    assertEquals(fields["transfermode.dlna.org"], "Streaming");
    assertEquals([fields["content-type"], fields["accept-ranges"]], ["video/mpeg", "bytes"]);
    assertEquals(fields["content-length"], String(ts.length));
  }
  const part = await get(entry!.url, { range: "bytes=1880-3759" });
  assertEquals([part.status, part.body], [206, whole.body.slice(2 * 1880, 2 * 3760)]);
  const times = await get(entry!.url, { "TimeSeekRange.dlna.org": "npt=0.0-1.0" });
  assertEquals([times.status, times.body.length > 0 && whole.body.startsWith(times.body)], [206, true]);

  const { entries: [season] } = await search('dc:title contains "Season"');
  const { entries: [first] } = await browse(season!.id);
  assertEquals((await get(first!.url, { range: "bytes=0-187" })).status, 206);
});

test("it sees what plays now, with its size, and plays it too", async () => {
  const { entries } = await browse("now");
  assertEquals(entries.map(({ title }) => title), ["film.ts", "Episode 2.mp4"]);
  const { result } = await call("Browse", { ObjectID: entries[1]!.id, BrowseFlag: "BrowseMetadata", ...PAGE }, LIST);
  assertMatch(result.Result, /<res protocolInfo="[^"]+" size="\d+" duration="0:00:06\.\d{3}">/);
  assertEquals((await get(entries[0]!.url, { range: "bytes=0-187" })).status, 206);
});

test("a control point learns what the server can send, and when the library changed", async () => {
  const { result } = await call("GetProtocolInfo", {}, ["Source", "Sink"], CONNECTION_MANAGER);
  assertMatch(result.Source, /^http-get:\*:video\/mpeg:DLNA\.ORG_OP=11/);
  const version = async () => (await call("GetSystemUpdateID", {}, ["Id"])).result.Id;
  const before = await version();
  await add({ title: "Another", infohash: "f".repeat(40) });
  await until("the number is another one", async () => await version() !== before);
});

test("it hears the server's goodbye", async () => {
  await engine.close();
  await point.line(new RegExp(`"unavailable": "${device}"`));
});
