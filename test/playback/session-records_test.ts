import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { type SessionRecord, SessionRecords } from "../../src/playback/session-records.ts";
import { OWN } from "../../src/bytes/shares.ts";
import { temporaryDirectory } from "../support/engine.ts";
import { FakeClock } from "../support/fake-clock.ts";

const IH = "1".repeat(40);
const idOf = (n: number) => n.toString(16).padStart(32, "0");

function record(n: number, more: Partial<SessionRecord> = {}): SessionRecord {
  return {
    id: idOf(n),
    infohashHex: IH,
    isLive: false,
    fileIndex: 0,
    isDefaultFile: true,
    output: "hls",
    hlsFormat: "auto",
    client: "me",
    clientHost: "127.0.0.1",
    owner: null,
    callerIsLocal: true,
    preferredAudioLanguage: null,
    transcode: null,
    clientSessionId: -1,
    useApiStop: false,
    stopNotifications: false,
    singleReader: false,
    cushion: null,
    withoutPeers: false,
    nextIndexes: [],
    magnet: null,
    channel: null,
    holder: OWN,
    holders: ["127.0.0.1"],
    ...more,
  };
}

test("SessionRecords.keep() holds 256 records, and a caller's flood evicts only its own", () => {
  const records = new SessionRecords();
  records.keep(record(1));
  for (let n = 100; n < 1100; n++) records.keep(record(n, { clientHost: "10.0.0.66" }));
  assertEquals(records.size, 256);
  assertEquals(records.find(IH, idOf(1))?.clientHost, "127.0.0.1");
  assertEquals([records.find(IH, idOf(100)), records.find(IH, idOf(1099))?.id], [null, idOf(1099)]);
});

test("SessionRecords.keep() bounds each record: a long magnet is left out, a session with a long name is not kept", () => {
  const records = new SessionRecords();
  records.keep(record(1, { magnet: `magnet:?${"x".repeat(9000)}` }));
  assertEquals(records.find(IH, idOf(1))?.magnet, null);
  records.keep(record(2, { client: "x".repeat(9000) }));
  assertEquals(records.find(IH, idOf(2)), null);
});

test("SessionRecords.addHolder() remembers the newest four callers", () => {
  const records = new SessionRecords();
  records.keep(record(1));
  for (const host of ["a", "b", "c", "d", "d"]) records.addHolder(idOf(1), host);
  assertEquals(records.find(IH, idOf(1))?.holders, ["a", "b", "c", "d"]);
  records.addHolder(idOf(7), "a");
  assertEquals(records.size, 1);
});

test("SessionRecords.findForSegment() distinguishes files, languages, transcoding and outputs", () => {
  const records = new SessionRecords();
  const aac = { mp3: true, ac3: false };
  records.keep(record(1));
  records.keep(record(2, { fileIndex: 3, isDefaultFile: false }));
  records.keep(record(3, { preferredAudioLanguage: "de" }));
  records.keep(record(4, { transcode: aac }));
  records.keep(record(5, { output: "ts" }));
  records.keep(record(6, { hlsFormat: "fmp4" }));
  const query = {
    infohashHex: IH,
    fileIndex: undefined,
    preferredAudioLanguage: null,
    transcode: null,
    hlsFormat: "auto" as const,
  };
  const found = (more: Partial<typeof query> | Record<string, unknown>) =>
    records.findForSegment({ ...query, ...more } as typeof query, "127.0.0.1")?.id ?? null;
  assertEquals([found({}), found({ fileIndex: 3 }), found({ fileIndex: 4 })], [idOf(1), idOf(2), null]);
  assertEquals([found({ preferredAudioLanguage: "de" }), found({ transcode: { ...aac } })], [idOf(3), idOf(4)]);
  assertEquals(found({ hlsFormat: "fmp4" }), idOf(6));
  assertEquals(records.findForSegment(query, "127.0.0.2"), null);
});

test("SessionRecords.load() reads the last run's records, and starts empty when the file is damaged", async () => {
  const directory = await temporaryDirectory();
  const { files } = await loadPorts();
  const clock = new FakeClock();
  const logged: string[] = [];
  const log = { log: (level: string, message: string) => void logged.push(`${level} ${message}`), child: () => log };
  const place = { files, stateDir: `${directory.path}/state`, clock, log };
  try {
    const records = await SessionRecords.load(place);
    for (const n of [1, 2, 3]) records.keep(record(n, { transcode: { mp3: true, ac3: false } }));
    records.forget(idOf(2));
    assertEquals(clock.pendingTimers, 1);
    await records.close();
    assertEquals(clock.pendingTimers, 0);
    const path = `${place.stateDir}/sessions.json`;
    const next = await SessionRecords.load(place);
    assertEquals([next.size, next.find(IH, idOf(3))], [2, record(3, { transcode: { mp3: true, ac3: false } })]);
    const text = new TextDecoder().decode(await files.readFile(path));
    const list = JSON.parse(text);
    list[0].output = "avi";
    await files.writeFile(path, new TextEncoder().encode(JSON.stringify(list)));
    assertEquals((await SessionRecords.load(place)).size, 1);
    assertEquals(logged, []);
    await files.writeFile(path, new TextEncoder().encode(text.slice(0, 50)));
    assertEquals((await SessionRecords.load(place)).size, 0);
    assert(logged[0]!.startsWith("warn the sessions of the last run are unreadable"));
  } finally {
    await directory.remove();
  }
});
