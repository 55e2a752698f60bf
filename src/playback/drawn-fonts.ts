/** The fonts that a session's film brings along for its scripts. */
import { deadline } from "../bytes/deadline.ts";
import { MillraceError } from "../errors.ts";
import type { AttachedFonts } from "../media/model/types.ts";
import type { Clock } from "../ports.ts";
import type { OutputBody } from "./output.ts";
import type { PlaybackSession } from "./session.ts";

/** Deadline for the list, and for each part of a font, ms: as long as that of a segment of texts. */
const READ_TIMEOUT_MS = 60_000;
/** Bytes of a font that are in memory at once. */
const PART_BYTES = 256 * 1024;

type Read = Pick<PlaybackSession, "hls" | "swarm" | "file" | "holder" | "signal" | "identity">;

const NONE: AttachedFonts = { fonts: [], leftOut: 0 };

/** What was found, by film: its list costs a few reads, wherever in the file its fonts are. */
const known = new WeakMap<object, AttachedFonts>();

/** The fonts of `session`. Rejects as `ByteSource.read`, with `timeout`, or with the signal's reason. */
export async function drawnFontsOf(session: Read, clock: Clock, signal: AbortSignal): Promise<AttachedFonts> {
  const { drawings } = session.hls ?? {};
  if (drawings?.findFonts === undefined) return NONE;
  const found = known.get(drawings);
  if (found !== undefined) return found;
  const reader = openReader(session);
  const late = lateness(session, clock, signal);
  try {
    const fonts = await drawings.findFonts(reader, late.signal);
    known.set(drawings, fonts);
    return fonts;
  } finally {
    late.cancel();
    reader.close();
  }
}

/** Font `number` of that list; null when there is none. Rejects as `drawnFontsOf`; its body errors in the same way. */
export async function drawnFontOf(
  session: Read,
  number: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<OutputBody | null> {
  const font = (await drawnFontsOf(session, clock, signal)).fonts[number];
  if (font === undefined) return null;
  const { offset, sizeBytes } = font;
  return {
    sizeBytes,
    fingerprint: `${session.identity.infohashHex}/${session.file.index}/font/${offset}`,
    open: (start, end) => streamOf(session, offset + start, offset + (end ?? sizeBytes), clock, signal),
  };
}

function openReader({ swarm, file, holder }: Read) {
  const reader = swarm.openReader(file.index, { readAheadBytes: 0 });
  reader.holder = holder;
  return reader;
}

function lateness(session: Read, clock: Clock, signal: AbortSignal) {
  return deadline(
    clock,
    READ_TIMEOUT_MS,
    AbortSignal.any([signal, session.signal]),
    () => new MillraceError("timeout", "the fonts of the film did not come in time"),
  );
}

/** `[from, end)` of the file, read as the client takes it. It is no playing, so the session's clock does not see it. */
function streamOf(
  session: Read,
  from: number,
  end: number,
  clock: Clock,
  signal: AbortSignal,
): ReadableStream<Uint8Array> {
  const reader = openReader(session);
  const close = () => {
    session.signal.removeEventListener("abort", close);
    reader.close();
  };
  session.signal.addEventListener("abort", close, { once: true });
  let at = from;
  return new ReadableStream({
    async pull(controller) {
      const late = lateness(session, clock, signal);
      try {
        const bytes = await reader.read(at, Math.min(PART_BYTES, end - at), { signal: late.signal });
        at += bytes.length;
        // The reader may show the bytes again.
        controller.enqueue(bytes.slice());
        if (at < end) return;
        close();
        controller.close();
      } catch (error) {
        close();
        controller.error(error);
      } finally {
        late.cancel();
      }
    },
    cancel: close,
  }, { highWaterMark: 0 });
}
