/** The front of a Torznab indexer, asked as Sonarr, Radarr and Prowlarr ask: requests and what is read are those of their sources. */
import { test } from "node:test";
import { parseXml, type XmlElement } from "@rgrove/parse-xml";
import { assert, assertEquals } from "@std/assert";
import { parseMagnet } from "../../../src/metainfo/magnet.ts";
import { TOKEN } from "../../api/support.ts";
import { ACCOUNT, type Ask, seededSeason, withAccount, withFront } from "./support.ts";

const season = seededSeason();
const HASHES = Array.from({ length: 9 }, (_, at) => String(at + 1).repeat(40));
/** Titles of the library, the oldest first. */
const TITLES = [
  ["Old.Film.1999.1080p", {}],
  ["Größe & Co 2160p UHD", {}],
  ["Show.Name.S01E01.720p", {}],
  ["Show.Name.S01E02.1080p", {}],
  ["Show.Name.S02", {}],
  ["Daily.Show.2024.05.17", {}],
  ["Hero - 07", { category: "Anime" }],
  ["A broadcast", { is_live: "1" }],
] as const;

type Call = Parameters<Parameters<typeof withFront>[1]>[1];

async function fill(call: Call): Promise<void> {
  for (const [at, [title, more]] of TITLES.entries()) {
    const magnet = `magnet:?xt=urn:btih:${HASHES[at]}&dn=x y&tr=http://tracker.example/a?b=c%26d`;
    await call("playlist_add_item", { token: TOKEN, title, magnet, is_live: "0", ...more });
  }
}

/** The document of an answer, which must be XML that any parser accepts. */
async function xmlOf(response: Response): Promise<XmlElement> {
  const text = await response.text();
  assert(response.headers.get("content-type")!.includes("xml"), text.slice(0, 200));
  return parseXml(text).root!;
}

const elements = (of: XmlElement) => of.children.filter((child) => child.type === "element") as XmlElement[];
const child = (of: XmlElement, name: string) => elements(of).find((one) => one.name === name)!;
const items = (root: XmlElement) => elements(child(root, "channel")).filter(({ name }) => name === "item");
const titles = (root: XmlElement) => items(root).map((item) => child(item, "title").text);

async function search(ask: Ask, query: string, from?: "internet"): Promise<XmlElement> {
  return await xmlOf(await ask(`/api?${query}`, from === undefined ? {} : { from }));
}

/** Values of the attributes of an item, as clients look them up. */
function attributes(item: XmlElement): Readonly<Record<string, string>> {
  const all = elements(item).filter(({ name }) => name === "torznab:attr").map(({ attributes }) => attributes);
  return Object.fromEntries(all.map(({ name, value }) => [name!, value!]));
}

test("Sonarr tests the indexer, reads what is new, and searches a series by season and episode", () =>
  withFront("torznab", async (ask, call) => {
    await fill(call);
    const caps = await search(ask, "t=caps");
    const searching = child(caps, "searching");
    assertEquals(child(searching, "tv-search").attributes, { available: "yes", supportedParams: "q,season,ep" });
    assertEquals(child(searching, "search").attributes, { available: "yes", supportedParams: "q" });
    const { default: usual, max } = child(caps, "limits").attributes;
    assertEquals([usual, max], ["100", "100"]);
    const [movies, tv] = elements(child(caps, "categories"));
    assertEquals([movies!.attributes["id"], tv!.attributes["id"]], ["2000", "5000"]);
    const subcategories = elements(tv!).map(({ attributes }) => attributes["id"]);
    assertEquals(subcategories, ["5030", "5040", "5045", "5070"]);

    const cat = "cat=5030,5040,5070&extended=1&offset=0&limit=100";
    const newest = await search(ask, `t=tvsearch&${cat}`);
    assertEquals(titles(newest), ["Show.Name.S02", "Show.Name.S01E02.1080p", "Show.Name.S01E01.720p"]);
    const find = async (query: string) => titles(await search(ask, `t=tvsearch&${cat}&${query}`));
    assertEquals(await find("q=Show%20Name&season=1&ep=2"), ["Show.Name.S01E02.1080p"]);
    assertEquals(await find("q=Show%20Name&season=1"), ["Show.Name.S01E02.1080p", "Show.Name.S01E01.720p"]);
    assertEquals(await find("q=Show%20Name&season=00"), []);
    // By a number of a database alone: everything would be a wrong answer.
    assertEquals(await find("tvdbid=12345&season=1&ep=2"), []);
    const daily = await search(ask, "t=tvsearch&q=Daily%20Show&season=2024&ep=05/17");
    assertEquals(titles(daily), ["Daily.Show.2024.05.17"]);
    assertEquals(titles(await search(ask, `t=tvsearch&cat=5040&offset=1&limit=1`)), ["Show.Name.S01E01.720p"]);
  }));

test("Radarr finds films by name and year, and reads magnet, infohash, date and size of each", () =>
  withFront("torznab", async (ask, call) => {
    await fill(call);
    const found = await search(ask, "t=search&cat=2000,2040&extended=1&offset=0&limit=100&q=Old%20Film%201999");
    const [item] = items(found);
    assertEquals(titles(found), ["Old.Film.1999.1080p"]);
    const { infohash, category, magneturl, ...more } = attributes(item!);
    assertEquals([infohash, category, more["size"], more["seeders"]], [HASHES[0], "2040", undefined, undefined]);
    const enclosure = child(item!, "enclosure").attributes;
    assertEquals([enclosure["type"], enclosure["url"]], ["application/x-bittorrent", magneturl]);
    const { infohashHex, trackers } = parseMagnet(magneturl!);
    assertEquals([infohashHex, trackers], [HASHES[0], ["http://tracker.example/a?b=c&d"]]);
    assert(/^[!-~]+$/.test(magneturl!), "an address has no space");
    const date = child(item!, "pubDate").text;
    assert(/^\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} \+0000$/.test(date) && !Number.isNaN(Date.parse(date)), date);
    assertEquals(titles(await search(ask, "t=movie&cat=2045")), ["Größe & Co 2160p UHD"]);
    assertEquals(titles(await search(ask, "t=movie&tmdbid=1&imdbid=0123456&cat=2000")), []);
    assertEquals(titles(await search(ask, "t=movie&cat=3000")), []);
    // A title does not say whether "Hero - 07" is an episode.
    assertEquals(titles(await search(ask, "t=search&q=hero")), ["Hero - 07"]);
  }));

test("Prowlarr reads the size of a torrent whose description is known, in every category that it may be of", () =>
  withFront("torznab", async (ask, call) => {
    const file = new File([season().transportFile.slice()], "x.torrent");
    const form = new FormData();
    form.set("file", file);
    await call("playlist_add_item", { token: TOKEN, title: "Season" }, { init: { method: "POST", body: form } });
    const [item] = items(await search(ask, "t=search&extended=1&cat=5000&q=season&limit=100"));
    const { infohashHex, totalBytes, files } = season().metainfo;
    const { infohash, size, files: count } = attributes(item!);
    assertEquals([infohash, size, count], [infohashHex, String(totalBytes), String(files.length)]);
    assertEquals(child(item!, "size").text, String(totalBytes));
    assertEquals(child(item!, "enclosure").attributes["length"], String(totalBytes));
    const categories = elements(item!).filter(({ name }) => name === "category").map(({ text }) => text);
    assertEquals(categories, ["5030", "2030"]);
  }));

test("--front torznab asks strangers for a key, and checks one that anybody gives", () =>
  withAccount("torznab", async (ask, call) => {
    await call("set_allow_remote_access", { token: TOKEN, value: "1" });
    const codeOf = (root: XmlElement) => root.attributes["code"];
    const get = (query: string, from?: "internet") => search(ask, query, from);
    assertEquals((await get("t=caps")).name, "caps");
    for (const query of ["t=caps", "t=search&q=x", "t=caps&apikey=", "t=caps&apikey=x"]) {
      assertEquals(codeOf(await get(query, "internet")), "100", query);
    }
    assertEquals(codeOf(await get("t=caps&apikey=0123456789abcdef0123456789abcdef")), "100");
    const key = encodeURIComponent(`${ACCOUNT.user}:${ACCOUNT.password}`);
    assertEquals((await get(`t=caps&apikey=${key}`, "internet")).name, "caps");
    assertEquals(codeOf(await get(`t=caps&apikey=${key}x`)), "100");
    for (const [query, code] of [["", "200"], ["t=register", "202"], ["t=search&limit=x", "201"]] as const) {
      assertEquals(codeOf(await get(query)), code, query);
    }
    assertEquals(codeOf(await get(`t=search&q=${"x".repeat(2000)}`)), "201");
    assertEquals(codeOf(await get("t=tvsearch&season=1e9")), "201");
  }));
