/** UPnP in a network without IPv4: a control point (GUPnP) on another machine finds the library and reads from it. Needs root. */
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createEngine, type Engine } from "../../src/engine.ts";
import type { HttpServer } from "../../src/ports.ts";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { type SeededFiles, seedFiles } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { type Program, start } from "../support/process.ts";
import { type OtherMachine, otherMachine } from "./support/other-machine.ts";

const TOKEN = "0123456789abcdef".repeat(4);
const CONTENT_DIRECTORY = "urn:schemas-upnp-org:service:ContentDirectory:1";

let machine: OtherMachine;
let film: SeededFiles;
let engine: Engine;
let server: HttpServer;
let point: Program;

before(async () => {
  machine = await otherMachine(76, 6);
  const ports = await loadPorts();
  film = await seedFiles([{ path: "film.ts", bytes: clip("ts-188.ts") }]);
  engine = await createEngine(ports, {
    ...{ fronts: ["dlna"], peerHost: "127.0.0.1", peerPort: 0, dht: false, lsd: false, accessToken: TOKEN },
  });
  server = await ports.http.serve({ host: machine.ownHost, port: 0 }, (request, info) => engine.fetch(request, info));
  engine.swarms.acquire({ metainfo: film.metainfo, magnet: parseMagnet(film.magnet) });
  engine.servedAt(server.address);
});
after(async () => {
  await point?.stop();
  await engine?.close();
  await server?.close(0);
  await film?.close();
  await machine?.remove();
});

test("a control point finds the media server over IPv6, browses it, and is given addresses that it can read", async () => {
  const script = new URL("./support/control_point.py", import.meta.url).pathname;
  const [command, ...args] = [...machine.command, "/usr/bin/python3", script, machine.interfaceName, machine.host];
  point = start(command!, args);
  const [, device, name] = await point.line(/"available": "(uuid:[^"]+)", "name": "([^"]+)"/);
  assertEquals(name, `millrace on ${machine.ownHost}`);
  let orders = 0;
  const order = async (what: Record<string, unknown>) => {
    const id = ++orders;
    point.child.stdin!.write(`${JSON.stringify({ id, ...what })}\n`);
    const [, rest] = await point.line(new RegExp(`^\\{"id": ${id}, (.*)\\}$`));
    return JSON.parse(`{${rest}}`);
  };
  const browsed = async (id: string): Promise<string> => {
    const which = { ObjectID: id, BrowseFlag: "BrowseDirectChildren", Filter: "*" };
    const args = { ...which, StartingIndex: "0", RequestedCount: "0", SortCriteria: "" };
    const action = { service: CONTENT_DIRECTORY, action: "Browse", results: ["Result"] };
    return (await order({ device, ...action, args })).result["Result"];
  };
  assertMatch(await browsed("0"), /Now playing/);
  const request = new Request(`http://[${machine.ownHost}]/server/api?method=playlist_add_item&token=${TOKEN}`, {
    method: "POST",
    body: new URLSearchParams({ title: "Film", infohash: film.metainfo.infohashHex }),
  });
  assertEquals((await (await engine.fetch(request)).json()).error, null);
  const address = (await browsed("all")).match(/<res [^>]*>(http:[^<]+)</)![1]!;
  assert(address.startsWith(`http://[${machine.ownHost}]:${server.address.port}/`), address);
  const read = await order({ url: address });
  assertEquals([read.status, read.body.slice(0, 2)], [200, "47"]);
});
