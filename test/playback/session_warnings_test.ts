/** What `stat` reports about a file that plays, but not as it should. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { detailOf, statOf } from "../../src/playback/stat.ts";
import {
  avcEntry,
  contiguousTables,
  fileOf,
  fullBox,
  movieBox,
  nalUnit,
  type TrackSpec,
  u32,
} from "../media/support/mp4-builder.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { FakeSwarm, FakeSwarms, makeSessions, startRequest } from "./support.ts";

const PICTURES = Array.from({ length: 60 }, (_, i) => nalUnit(i === 0 ? 0x65 : 0x41, 100));

/** A film whose first `standing` pictures have one time, turned by `turn`. */
function film(standing: number, turn: readonly [number, number]): Uint8Array {
  const track = (offset: number): TrackSpec => {
    const [, chunks, sizes, offsets] = contiguousTables(PICTURES.map(({ length }) => length), 1000, offset);
    const times = fullBox("stts", 0, 0, u32(2, standing, 0, PICTURES.length - standing, 1000));
    return {
      id: 1,
      kind: "vide",
      timescale: 25_000,
      entry: avcEntry(),
      tables: [times, chunks!, sizes!, offsets!],
      turn,
    };
  };
  return fileOf((offset) => movieBox([track(offset)]), PICTURES);
}

async function errorMessageOf(bytes: Uint8Array): Promise<string | null> {
  const swarm = new FakeSwarm([{ name: "film.mp4", bytes }]);
  const sessions = makeSessions(new FakeClock(), new FakeSwarms(swarm));
  const session = await sessions.start(startRequest(swarm.infohashHex, { output: "ts" }));
  assert(session.kind === "file");
  await session.ready(new AbortController().signal);
  const told = statOf(session, { limitBytes: 0, usedBytes: 0 }, "prefuf")["error_message"];
  assertEquals(detailOf(session)["error_code"], told === null ? null : "corrupt");
  await sessions.close();
  return told as string | null;
}

test("PlaybackSession.problem is null for a film without faults", async () => {
  assertEquals(await errorMessageOf(film(0, [1, 0])), null);
});

test("PlaybackSession.problem reports faults of a film first, then what its output cannot express", async () => {
  assertEquals(
    await errorMessageOf(film(30, [0, 1])),
    "the file does not play as it should: of 60 pictures and frames of sound 30 had times that run back; " +
      "video track 1 is to be turned by 90° clockwise, which MPEG TS cannot say",
  );
});
