/**
 * Tables of sound that is counted by samples. Here a sample is one moment of sound, far too small for an access unit,
 * so each unit holds many. PCM stores each moment separately, ADPCM packs some dozens together.
 */
import { ColumnBuilder } from "../../model/column.ts";
import { requirePlausible } from "../../model/plausible.ts";
import type { SampleTable } from "../../model/timeline.ts";
import type { IndexWork } from "../../source/work.ts";
import { type Box, child, entriesOf } from "../../../bytes/boxes.ts";
import type { MovieTrack } from "./movie.ts";
import { chunksOf } from "./sample-cursors.ts";
import { requireFewer } from "./sample-table.ts";

/** Moments in an access unit: 21 ms at 48 kHz. */
const MOMENTS_PER_UNIT = 1024;
/** Access units and chunks between two checks of the clock. */
const STRIDE = 4096;

/** Whether the container counts the sound of the track by samples. Some muxers count ADPCM by packets. */
export function isCounted({ track, sampleTable }: MovieTrack): boolean {
  const { soundPacket } = track;
  if (soundPacket === undefined) return track.codec === "pcm";
  return sampleTable !== null && momentUnits(sampleTable) < soundPacket.samples;
}

/** The table of a PCM track, as `buildTable` returns it; null when the track has no sound or its form is unknown. */
export async function buildPcmTable(
  { sampleTable: stbl, timescale, shiftS, track }: MovieTrack,
  limit: number,
  work: IndexWork,
): Promise<SampleTable | null> {
  const packet = track.soundPacket ?? { samples: 1, bytes: (track.channels ?? 0) * (track.bitDepth ?? 0) / 8 };
  const sizes = stbl === null ? null : child(stbl, "stsz");
  if (stbl === null || sizes === null || sizes.start + 12 > sizes.end) return null;
  if (!Number.isInteger(packet.bytes) || packet.bytes < 1 || packet.samples < 1) return null;
  // Decoders of ADPCM take one packet at a time.
  const packetsPerUnit = track.soundPacket === undefined ? MOMENTS_PER_UNIT : 1;
  const present = Math.floor(work.sizeBytes / packet.bytes) * packet.samples;
  const declared = Math.min(sizes.view.getUint32(sizes.start + 8), present);
  const perMoment90k = 90_000 * momentUnits(stbl) / timescale;
  requirePlausible(declared * perMoment90k / 90_000, work.sizeBytes);
  const offsets = new ColumnBuilder();
  const unitSizes = new ColumnBuilder();
  const times = new ColumnBuilder();
  let moment = 0;
  let steps = 0;
  chunks: for (const chunk of chunksOf(stbl)) {
    if (steps++ % STRIDE === 0) await work.spend(STRIDE);
    const end = Math.min(declared, moment + chunk.samples);
    for (let { offset } = chunk; moment < end;) {
      if (steps++ % STRIDE === 0) await work.spend(STRIDE);
      const room = Math.floor((work.sizeBytes - offset) / packet.bytes);
      const count = Math.min(packetsPerUnit, Math.ceil((end - moment) / packet.samples), room);
      if (count <= 0) break chunks;
      requireFewer(offsets.length + 1, limit);
      offsets.push(offset);
      unitSizes.push(count * packet.bytes);
      times.push(Math.round(moment * perMoment90k + shiftS * 90_000));
      offset += count * packet.bytes;
      moment += count * packet.samples;
    }
    if (moment >= declared) break;
  }
  if (offsets.length === 0) return null;
  return {
    count: offsets.length,
    payloadBytes: moment / packet.samples * packet.bytes,
    offsets: offsets.finish(),
    sizes: unitSizes.finish(),
    dts90k: times.finish(),
    ptsShift90k: null,
    keyframes: null,
  };
}

/** Track units of a moment: the first duration of `stts`, 1 in every intact file. */
function momentUnits(stbl: Box): number {
  const box = child(stbl, "stts");
  const list = box === null ? { at: 0, count: 0 } : entriesOf(box, 4, 8);
  return list.count === 0 ? 1 : box!.view.getUint32(list.at + 4) || 1;
}
