/** A strict reader of MPEG TS for tests: demultiplexes, and lists all violations of ISO/IEC 13818-1 and of our own promises. */
import { concatBytes } from "../../src/bytes/hex.ts";

/** One PES packet. Times are 33-bit, 90 kHz. */
export interface CheckedUnit {
  readonly pts: number;
  readonly dts: number;
  readonly randomAccess: boolean;
  readonly data: Uint8Array;
}

/** One elementary stream. */
export interface CheckedStream {
  readonly pid: number;
  readonly streamType: number;
  readonly language: string | null;
  readonly units: CheckedUnit[];
}

/** What `checkTs` found. */
export interface TsReport {
  /** Empty when all is well. */
  readonly problems: string[];
  readonly streams: CheckedStream[];
  readonly pcrs: number[];
  readonly nullPackets: number;
}

/** What to insist on. */
export interface CheckOptions {
  /** Begins with PAT and PMT, each PID's counter runs from 0 to 15. Default true. */
  readonly isSegment?: boolean;
  /** The bytes were cut out of a stream: packets before the tables and half access units are fine. Default false. */
  readonly isRange?: boolean;
}

const WRAP = 2 ** 33;

/** `a - b` on the 33-bit circle, −2^32 … 2^32. */
export function ticksBetween(a: number, b: number): number {
  const difference = (((a - b) % WRAP) + WRAP) % WRAP;
  return difference > WRAP / 2 ? difference - WRAP : difference;
}

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc = (crc ^ (byte << 24)) >>> 0;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x80000000 ? (crc << 1) ^ 0x04c11db7 : crc << 1) >>> 0;
  }
  return crc;
}

interface Assembly {
  parts: Uint8Array[];
  randomAccess: boolean;
  pcr: number | null;
}

/** Reads `ts` and checks it. */
export function checkTs(ts: Uint8Array, options: CheckOptions = {}): TsReport {
  const isSegment = options.isSegment ?? options.isRange !== true;
  const problems: string[] = [];
  const counters = new Map<number, number>();
  const streams = new Map<number, CheckedStream>();
  const open = new Map<number, Assembly>();
  const sections = new Map<number, Uint8Array>();
  const pcrs: number[] = [];
  let nullPackets = 0;
  let pmtPid = -1;
  let pcrPid = -1;
  let lastPcr: number | null = null;
  const problem = (at: number, text: string) => {
    if (problems.length < 20) problems.push(`packet ${at / 188}: ${text}`);
  };
  if (ts.length % 188 !== 0) problems.push(`${ts.length} bytes are not whole packets`);

  const close = (pid: number, at: number) => {
    const assembly = open.get(pid);
    open.delete(pid);
    const stream = streams.get(pid);
    if (assembly === undefined || stream === undefined) return;
    const bytes = concatBytes(assembly.parts);
    if (bytes.length < 9 || bytes[0] !== 0 || bytes[1] !== 0 || bytes[2] !== 1) return problem(at, "no PES start code");
    const declared = (bytes[4]! << 8) | bytes[5]!;
    if (declared !== 0 && declared + 6 > bytes.length) return problem(at, `PES of PID ${pid} is short`);
    const flags = bytes[7]! >> 6;
    if (flags < 2) return problem(at, "PES without PTS");
    const pts = stamp(bytes, 9);
    const dts = flags === 3 ? stamp(bytes, 14) : pts;
    if (ticksBetween(pts, dts) < 0) problem(at, "PTS before DTS");
    if (assembly.pcr !== null && ticksBetween(dts, assembly.pcr) < 0) {
      problem(at, `DTS ${dts} before PCR ${assembly.pcr}`);
    }
    const last = stream.units[stream.units.length - 1];
    if (last !== undefined && ticksBetween(dts, last.dts) <= 0) problem(at, `DTS of PID ${pid} runs back`);
    const end = declared === 0 ? bytes.length : declared + 6;
    stream.units.push({ pts, dts, randomAccess: assembly.randomAccess, data: bytes.subarray(9 + bytes[8]!, end) });
  };

  const readSection = (pid: number, at: number, section: Uint8Array) => {
    const length = 3 + (((section[1]! & 15) << 8) | section[2]!);
    if (section.length < length) return void sections.set(pid, section);
    sections.delete(pid);
    if (crc32(section.subarray(0, length)) !== 0) return problem(at, `bad CRC in PID ${pid}`);
    if (pid === 0) {
      pmtPid = ((section[10]! & 31) << 8) | section[11]!;
      return;
    }
    pcrPid = ((section[8]! & 31) << 8) | section[9]!;
    for (let i = 12 + (((section[10]! & 15) << 8) | section[11]!); i < length - 4;) {
      const esPid = ((section[i + 1]! & 31) << 8) | section[i + 2]!;
      const end = i + 5 + (((section[i + 3]! & 15) << 8) | section[i + 4]!);
      let language: string | null = null;
      for (let d = i + 5; d < end; d += 2 + section[d + 1]!) {
        if (section[d] === 10) language = String.fromCharCode(section[d + 2]!, section[d + 3]!, section[d + 4]!);
      }
      if (!streams.has(esPid)) streams.set(esPid, { pid: esPid, streamType: section[i]!, language, units: [] });
      i = end;
    }
  };

  for (let at = 0; at + 188 <= ts.length; at += 188) {
    if (ts[at] !== 0x47) {
      problem(at, "no sync byte");
      break;
    }
    const startsUnit = (ts[at + 1]! & 0x40) !== 0;
    const pid = ((ts[at + 1]! & 31) << 8) | ts[at + 2]!;
    if (pid === 0x1fff) {
      nullPackets++;
      continue;
    }
    const control = (ts[at + 3]! >> 4) & 3;
    const cc = ts[at + 3]! & 15;
    const hasPayload = (control & 1) !== 0;
    const last = counters.get(pid);
    if (isSegment && last === undefined && hasPayload && cc !== 0) problem(at, `PID ${pid} begins with counter ${cc}`);
    if (last !== undefined && cc !== ((last + (hasPayload ? 1 : 0)) & 15)) {
      problem(at, `PID ${pid} counter ${last} → ${cc}`);
    }
    if (hasPayload || last === undefined) counters.set(pid, cc);
    if (isSegment && at === 0 && pid !== 0) problem(at, "does not begin with a PAT");
    if (isSegment && at === 188 && pid !== pmtPid) problem(at, "no PMT behind the PAT");
    let body = at + 4;
    let randomAccess = false;
    if (control & 2) {
      const length = ts[body]!;
      if (length > 183 || (hasPayload && length > 182)) problem(at, `adaptation field of ${length}`);
      if (length > 0) {
        randomAccess = (ts[body + 1]! & 0x40) !== 0;
        if (ts[body + 1]! & 0x10) {
          if (pid !== pcrPid && pcrPid >= 0) problem(at, "PCR on another PID");
          const high = ((ts[body + 2]! << 24) | (ts[body + 3]! << 16) | (ts[body + 4]! << 8) | ts[body + 5]!) >>> 0;
          const pcr = high * 2 + (ts[body + 6]! >> 7);
          if (lastPcr !== null) {
            const gap = ticksBetween(pcr, lastPcr);
            if (gap < 0) problem(at, `PCR runs back by ${-gap}`);
            if (gap > 9000) problem(at, `PCR gap of ${gap / 90} ms`);
          }
          lastPcr = pcr;
          pcrs.push(pcr);
        }
      }
      body += 1 + length;
    }
    if (!hasPayload) continue;
    const payload = ts.subarray(body, at + 188);
    if (pid === 0 || pid === pmtPid) {
      if (startsUnit) readSection(pid, at, payload.subarray(1 + payload[0]!));
      else if (sections.has(pid)) readSection(pid, at, concatBytes([sections.get(pid)!, payload]));
    } else if (startsUnit) {
      close(pid, at);
      open.set(pid, { parts: [payload], randomAccess, pcr: lastPcr });
    } else if (open.has(pid)) {
      open.get(pid)!.parts.push(payload);
    } else if (options.isRange !== true) {
      problem(at, `payload of PID ${pid} outside a PES`);
    }
  }
  for (const pid of [...open.keys()]) if (options.isRange !== true) close(pid, ts.length);
  if (isSegment) {
    for (const [pid, cc] of counters) if (cc !== 15) problem(ts.length, `PID ${pid} ends at counter ${cc}`);
  }
  return { problems, streams: [...streams.values()], pcrs, nullPackets };
}

function stamp(bytes: Uint8Array, at: number): number {
  const high = (bytes[at]! >> 1) & 7;
  const middle = ((bytes[at + 1]! << 7) | (bytes[at + 2]! >> 1)) & 0x7fff;
  const low = ((bytes[at + 3]! << 7) | (bytes[at + 4]! >> 1)) & 0x7fff;
  return high * 2 ** 30 + middle * 2 ** 15 + low;
}
