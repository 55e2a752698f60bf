/** Subtitles that the page draws, our addition: a list of those of a session, and their files segment by segment. */
import { drawnFontOf, drawnFontsOf } from "../playback/drawn-fonts.ts";
import { drawnHeadOf, drawnSegmentOf, drawnSubtitlesOf } from "../playback/drawn-subtitles.ts";
import type { OutputBody } from "../playback/output.ts";
import type { AnySession } from "../playback/sessions.ts";
import type { Clock } from "../ports.ts";
import type { HttpContext } from "./context.ts";

const TYPES = { pgs: "application/octet-stream", ass: "text/x-ssa; charset=utf-8" };
const fieldsOf = (form: keyof typeof TYPES) => ({
  "content-type": TYPES[form],
  "cache-control": "no-cache",
  "x-content-type-options": "nosniff",
});

/** `font-0` as `fonts.json` lists it; null for other names and numbers. Rejects as `drawnFontOf`. */
export async function drawnFont(c: HttpContext, session: AnySession, clock: Clock): Promise<OutputBody | null> {
  const number = /^font-(\d{1,3})$/.exec(c.req.param("name") ?? "")?.[1];
  if (session.kind !== "file" || number === undefined) return null;
  return await drawnFontOf(session, Number(number), clock, c.req.raw.signal);
}

/**
 * `drawn.json`, `fonts.json`, `d0.ass` (the head of a script), `d0-7.ass` or `d0-7.sup` (what begins in segment 7); null for
 * other names, and where there are none of that number. Rejects as `drawnSegmentOf` and `drawnFontsOf`.
 */
export async function drawnFile(c: HttpContext, session: AnySession, clock: Clock): Promise<Response | null> {
  if (session.kind !== "file") return null;
  const name = c.req.param("name") ?? "";
  if (name === "drawn.json") {
    const { tracks, startsMs } = drawnSubtitlesOf(session);
    const list = {
      tracks: tracks.map(({ number, form, name, language, isForced }) => ({
        number,
        form,
        name,
        language,
        is_forced: isForced,
      })),
      starts_ms: startsMs,
    };
    return c.json(list, 200, { "cache-control": "no-cache" });
  }
  if (name === "fonts.json") {
    const { fonts, leftOut } = await drawnFontsOf(session, clock, c.req.raw.signal);
    const list = fonts.map(({ name, sizeBytes }, number) => ({ number, name, size_bytes: sizeBytes }));
    return c.json({ fonts: list, left_out: leftOut }, 200, { "cache-control": "no-cache" });
  }
  const head = /^d(\d{1,3})\.ass$/.exec(name)?.[1];
  if (head !== undefined) {
    const text = drawnHeadOf(session, Number(head));
    return text === null ? null : new Response(text, { headers: fieldsOf("ass") });
  }
  const [, number, n] = /^d(\d{1,3})-(\d{1,9})\.(?:ass|sup)$/.exec(name) ?? [];
  if (number === undefined) return null;
  const onlyHere = c.req.query("here") === "1";
  const found = await drawnSegmentOf(session, Number(number), Number(n), onlyHere, clock, c.req.raw.signal);
  return found && new Response(found.body, { headers: fieldsOf(found.form) });
}
