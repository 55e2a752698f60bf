/** Finding programs and talking to them, without any: test/interop has the real ones. */
import { test } from "node:test";
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { MpvIpc } from "../../src/players/programs/mpv-ipc.ts";
import { ProgramFinder } from "../../src/players/programs/program-finder.ts";
import { VlcCli } from "../../src/players/programs/vlc-cli.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { silent } from "../support/fault-log.ts";
import { FakeStream } from "./support.ts";

const { signal } = new AbortController();

/** A machine that has the programs of `paths`. */
function machine(paths: readonly string[], hasDesktop = true) {
  const never = () => Promise.reject(new Error("nothing is to be started"));
  const asked: string[] = [];
  return {
    asked,
    clock: new FakeClock(),
    log: silent,
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

test("ProgramFinder lists mpv, VLC and ffplay of the PATH where there is a desktop, once each, for callers on this machine", async () => {
  const ports = machine(["/usr/bin/ffplay", "/usr/bin/vlc", "/usr/bin/mpv"]);
  const finder = new ProgramFinder(ports, AUTOMATIC);
  const found = await finder.list();
  assertEquals(found.map(({ facts, localOnly }) => ({ ...facts, localOnly })), [
    { id: "program:mpv", type: "proxy", protocol: null, name: "mpv", icon: null, localOnly: true },
    { id: "program:vlc", type: "proxy", protocol: null, name: "VLC", icon: null, localOnly: true },
    { id: "program:ffplay", type: "proxy", protocol: null, name: "ffplay", icon: null, localOnly: true },
  ]);
  assertEquals(await finder.list(), found);
  assertEquals(ports.asked, ["mpv", "vlc", "ffplay"]);
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

test("ProgramFinder lists only the programs that the user named, with or without a desktop, and refuses others", async () => {
  const ports = machine(["/opt/cvlc", "/usr/bin/mpv"], false);
  const named = { programs: ["/opt/cvlc"], discovery: false };
  assertEquals((await new ProgramFinder(ports, named).list()).map(({ facts }) => facts.id), ["program:vlc"]);
  const error = assertThrows(() => new ProgramFinder(ports, { programs: ["/bin/sh"], discovery: true }), MillraceError);
  assertEquals(error.code, "config");
});

const unexpected = (error: unknown) => {
  throw error;
};

/** Two ends of a connection: what the engine writes, and what the test writes in the player's place. */
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

test("MpvIpc.command() matches replies by number, whatever comes between them", async () => {
  const wire = wires();
  const ipc = new MpvIpc(wire, unexpected);
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

test("MpvIpc.command() rejects pending commands when mpv ends, and refuses more than 32 unanswered ones", async () => {
  const wire = wires();
  const ipc = new MpvIpc(wire, unexpected);
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

test("VlcCli.status() does not use the answer to a query that was given up", async () => {
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

/** Simulated ffplays that run until they are killed and print what the test wants. */
function ffplays() {
  const runs: { args: readonly string[]; say(text: string): void; exit(): void; isOver: boolean }[] = [];
  const spawn = (_path: string, args: readonly string[]) => {
    const wire = wires();
    let over!: (code: number) => void;
    const exited = new Promise<number>((resolve) => over = resolve);
    const run = {
      args,
      isOver: false,
      say: wire.say,
      exit() {
        if (run.isOver) return;
        run.isOver = true;
        wire.end();
        over(0);
      },
    };
    runs.push(run);
    return Promise.resolve({
      pid: runs.length,
      stdin: wire.writable,
      stdout: ReadableStream.from<Uint8Array>([]),
      stderr: wire.readable,
      exited,
      kill: run.exit,
    });
  };
  return { runs, ports: { ...machine(["/usr/bin/ffplay"]), processes: { spawn } } };
}
const HEAD = "  Duration: 01:00:06.50, start: 1.500000, bitrate: 168 kb/s\n";
const at = (seconds: string) => `   ${seconds} A-V: -0.046 fd=   0 aq=    4KB vq=    9KB sq=    0B f=0/0   \r`;
/** Lets promises go on. */
const rest = () => new Promise((resolve) => setImmediate(resolve));

async function openFfplay(stream = new FakeStream("1")) {
  const { runs, ports } = ffplays();
  const player = (await new ProgramFinder(ports, AUTOMATIC).list())[0]!;
  const opening = player.open(stream, signal);
  opening.catch(() => {});
  while (runs.length === 0) await rest();
  return { runs, player, opening };
}

test("ffplay counts as playing once its clock runs, and no title can become an option", async () => {
  const stream = Object.assign(new FakeStream("1"), { title: "-x \0 film\n" });
  const { runs, player, opening } = await openFfplay(stream);
  assertEquals(runs[0]!.args.slice(-4), ["-window_title", "-x   film ", "-i", stream.url]);
  runs[0]!.say(`    nan    :  0.000 fd=   0 aq=    0KB vq=    0KB sq=    0B f=0/0   \r${HEAD}`);
  await rest();
  assertEquals((await player.status(signal)).positionSeconds, 0);
  runs[0]!.say(at("3.50"));
  await opening;
  assertEquals(await player.status(signal), { state: "playing", positionSeconds: 2, durationSeconds: 3606.5 });
  runs[0]!.exit();
  while ((await player.status(signal)).state !== "idle") await rest();
  assertEquals((await assertRejects(() => player.control({ kind: "pause" }, signal), MillraceError)).code, "conflict");
});

test("ffplay is restarted to seek or resume, with one window at a time", async () => {
  const { runs, player, opening } = await openFfplay();
  runs[0]!.say(HEAD + at("3.50"));
  await opening;
  await player.control({ kind: "pause" }, signal);
  assertEquals([runs.length, runs[0]!.isOver], [1, true]);
  assertEquals(await player.status(signal), { state: "paused", positionSeconds: 2, durationSeconds: 3606.5 });
  await player.control({ kind: "resume" }, signal);
  assertEquals(runs[1]!.args.slice(-4, -2), ["-ss", "2"]);
  await Promise.all([1800, 1900].map((positionSeconds) => player.control({ kind: "seek", positionSeconds }, signal)));
  assertEquals(runs.map(({ isOver }) => isOver), [true, true, true, false]);
  assertEquals(await player.status(signal), { state: "playing", positionSeconds: 1900, durationSeconds: 3606.5 });
  await player.control({ kind: "stop" }, signal);
  assertEquals([runs.length, runs[3]!.isOver, (await player.status(signal)).state], [4, true, "idle"]);
});

test("ffplay says why it does not play, without the address", async () => {
  const stream = new FakeStream("1");
  const { runs, opening } = await openFfplay(stream);
  runs[0]!.say(`${stream.url}: Invalid data found when processing input\n\n`);
  runs[0]!.exit();
  await assertRejects(() => opening, MillraceError, "ffplay does not play it: Invalid data found");
});

test("ffplay can't be paused in a broadcast, and has no position there", async () => {
  const { runs, player, opening } = await openFfplay(Object.assign(new FakeStream("1"), { isLive: true }));
  runs[0]!.say(`  Duration: N/A, start: 95443.717689, bitrate: N/A\n${at("95450.1")}`);
  await opening;
  assertEquals(await player.status(signal), { state: "playing", positionSeconds: null, durationSeconds: null });
  await assertRejects(() => player.control({ kind: "pause" }, signal), MillraceError, "can only be stopped");
  assertEquals(runs[0]!.isOver, false);
});
