/** Finding programs and talking to them, without any: test/interop has the real ones. */
import { test } from "node:test";
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { MpvIpc } from "../../src/players/programs/mpv-ipc.ts";
import { ProgramFinder } from "../../src/players/programs/program-finder.ts";
import { VlcCli } from "../../src/players/programs/vlc-cli.ts";
import { FakeClock } from "../support/fake-clock.ts";

const { signal } = new AbortController();

/** A machine that has the programs of `paths`. */
function machine(paths: readonly string[], hasDesktop = true) {
  const never = () => Promise.reject(new Error("nothing is to be started"));
  const asked: string[] = [];
  return {
    asked,
    clock: new FakeClock(),
    processes: { spawn: never },
    localSockets: { newAddress: never, connect: never },
    programs: {
      hasDesktop: () => hasDesktop,
      find(command: string) {
        asked.push(command);
        return Promise.resolve(paths.find((path) => path === command || path.endsWith(`/${command}`)) ?? null);
      },
    },
  };
}
const AUTOMATIC = { programs: [], discovery: true };

test("ProgramFinder lists mpv and VLC of the PATH where there is a desktop, once each, for callers on this machine", async () => {
  const ports = machine(["/usr/bin/vlc", "/usr/bin/mpv"]);
  const finder = new ProgramFinder(ports, AUTOMATIC);
  const found = await finder.list();
  assertEquals(found.map(({ facts, localOnly }) => ({ ...facts, localOnly })), [
    { id: "program:mpv", type: "proxy", protocol: null, name: "mpv", icon: null, localOnly: true },
    { id: "program:vlc", type: "proxy", protocol: null, name: "VLC", icon: null, localOnly: true },
  ]);
  assertEquals(await finder.list(), found);
  assertEquals(ports.asked, ["mpv", "vlc"]);
  assertEquals(await new ProgramFinder(machine(["/usr/bin/mpv"], false), AUTOMATIC).list(), []);
  assertEquals(await new ProgramFinder(machine(["/usr/bin/mpv"]), { programs: [], discovery: false }).list(), []);
});

test("ProgramFinder looks again after a minute, not before", async () => {
  const paths: string[] = [];
  const ports = machine(paths);
  const finder = new ProgramFinder(ports, AUTOMATIC);
  assertEquals(await finder.list(), []);
  paths.push("/usr/bin/mpv");
  ports.clock.advance(59_999);
  assertEquals(await finder.list(), []);
  ports.clock.advance(1);
  assertEquals((await finder.list()).length, 1);
});

test("ProgramFinder lists what the user named alone, desktop or not, and refuses other programs", async () => {
  const ports = machine(["/opt/cvlc", "/usr/bin/mpv"], false);
  const named = { programs: ["/opt/cvlc"], discovery: false };
  assertEquals((await new ProgramFinder(ports, named).list()).map(({ facts }) => facts.id), ["program:vlc"]);
  const error = assertThrows(() => new ProgramFinder(ports, { programs: ["/bin/sh"], discovery: true }), MillraceError);
  assertEquals(error.code, "config");
});

/** Two ends of a connection: what the engine writes, and what the test says in the player's place. */
function wires() {
  const said: string[] = [];
  let say!: ReadableStreamDefaultController<Uint8Array>;
  const decoder = new TextDecoder();
  return {
    said,
    readable: new ReadableStream<Uint8Array>({ start: (controller) => void (say = controller) }),
    writable: new WritableStream<Uint8Array>({ write: (chunk) => void said.push(decoder.decode(chunk)) }),
    say: (text: string) => say.enqueue(new TextEncoder().encode(text)),
    end: () => say.close(),
    close: () => {},
  };
}

test("MpvIpc.command() tells replies apart by number, whatever comes between them", async () => {
  const wire = wires();
  const ipc = new MpvIpc(wire);
  const events: string[] = [];
  const forget = ipc.listen(({ event }) => events.push(event));
  const one = ipc.command(["get_property", "pause"], signal);
  const two = ipc.command(["get_property", "title"], signal);
  const three = ipc.command(["loadfile", "x"], signal);
  wire.say('{"event":"start-file"}\n{"error":"success","data":"a film","request_id":2}\nno JSON\n[1]\nnull\n');
  wire.say('{"error":"success","data":true,"request_id":1}\n{"error":"success","data":0,"request_id":99}\n');
  wire.say('{"error":"invalid parameter","request_id":3}\n');
  assertEquals(await Promise.all([one, two]), [true, "a film"]);
  assertEquals((await assertRejects(() => three, MillraceError) as MillraceError).message, "mpv: invalid parameter");
  forget();
  wire.say('{"event":"idle"}\n');
  assertEquals(events, ["start-file"]);
  assertEquals(JSON.parse(wire.said[0]!), { command: ["get_property", "pause"], request_id: 1 });
});

test("MpvIpc.command() rejects what waits when mpv ends, and refuses more than 32 questions that nobody answers", async () => {
  const wire = wires();
  const ipc = new MpvIpc(wire);
  const waiting = Array.from({ length: 32 }, () => assertRejects(() => ipc.command(["a"], signal), MillraceError));
  const refused = await assertRejects(() => ipc.command(["a"], signal), MillraceError);
  assertEquals((refused as MillraceError).code, "too_busy");
  wire.end();
  for (const error of await Promise.all(waiting)) assertEquals((error as MillraceError).code, "closed");
  assertEquals((await assertRejects(() => ipc.command(["a"], signal), MillraceError) as MillraceError).code, "closed");
});

test("VlcCli.status() reads its three values among prompts and other words", async () => {
  const wire = wires();
  const cli = new VlcCli(wire.writable, wire.readable);
  wire.say("VLC media player 3.0.24 Vetinari\nCommand Line Interface initialized. Type `help' for help.\r\n");
  await cli.line(/initialized/, signal);
  await cli.send("add http://127.0.0.1/x", signal);
  const playing = cli.status(signal);
  wire.say("> > > ( new input: http://127.0.0.1/x )\r\n( audio volume: 0 )\r\n( state playing )\r\n> 12\r\n> 3600\r\n");
  assertEquals(await playing, { state: "playing", timeSeconds: 12, lengthSeconds: 3600 });
  const stopped = cli.status(signal);
  wire.say("> ( audio volume: 0 )\r\n( state stopped )\r\n> \r\n> \r\n");
  assertEquals(await stopped, { state: "stopped", timeSeconds: null, lengthSeconds: null });
  assertEquals(wire.said, [
    "add http://127.0.0.1/x\n",
    "status\nget_time\nget_length\n",
    "status\nget_time\nget_length\n",
  ]);
});

test("VlcCli.status() takes no answer that belongs to a question given up", async () => {
  const wire = wires();
  const cli = new VlcCli(wire.writable, wire.readable);
  const giveUp = new AbortController();
  const first = assertRejects(() => cli.status(giveUp.signal), MillraceError);
  giveUp.abort(new MillraceError("timeout", "late"));
  await first;
  const second = cli.status(signal);
  wire.say("( state playing )\n1\n10\n( state paused )\n2\n10\n");
  assertEquals(await second, { state: "paused", timeSeconds: 2, lengthSeconds: 10 });
});

test("VlcCli rejects what waits when VLC ends, and refuses more than 32 commands at once", async () => {
  const wire = wires();
  const cli = new VlcCli(wire.writable, wire.readable);
  const waiting = Array.from({ length: 32 }, () => assertRejects(() => cli.status(signal), MillraceError));
  assertEquals((await assertRejects(() => cli.status(signal), MillraceError) as MillraceError).code, "too_busy");
  cli.close();
  for (const error of await Promise.all(waiting)) assertEquals((error as MillraceError).code, "closed");
  assertEquals((await assertRejects(() => cli.send("x", signal), MillraceError) as MillraceError).code, "closed");
});
