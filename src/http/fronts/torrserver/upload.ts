/** `/torrent/upload`: transport files as parts of a form, under any name. */
import { MillraceError } from "../../../errors.ts";
import type { HttpContext, HttpParts } from "../../context.ts";
import { readBody } from "../../request-body.ts";
import type { Torrent } from "./kept.ts";

/** Largest body, bytes: a transport file of 16 MiB and the fields around it. */
const MAX_BODY_BYTES = 17 * 1024 * 1024;
/** Transport files of one body. */
const MAX_FILES = 50;

/** The torrents of the files that can be read. Throws `invalid_argument` where the body is no form. */
export async function uploadedTorrents(c: HttpContext, parts: HttpParts): Promise<Torrent[]> {
  const { holder, isLocal } = c.get("caller");
  const hold = parts.admission.body(holder);
  try {
    const tooLarge = () => new MillraceError("too_large", `the form has more than ${MAX_BODY_BYTES} bytes`);
    const bytes = await readBody(c.req.raw, parts.clock, MAX_BODY_BYTES, hold, tooLarge);
    const form = await formOf(bytes, c.req.header("content-type") ?? "");
    const text = (name: string) => {
      const value = form.get(name);
      return typeof value === "string" ? value : "";
    };
    const files = [...form.values()].filter((value): value is File => value instanceof File).slice(0, MAX_FILES);
    const torrents: Torrent[] = [];
    for (const file of files) {
      const selector = { kind: "transport_file", bytes: new Uint8Array(await file.arrayBuffer()) } as const;
      const context = { callerIsLocal: isLocal, signal: c.req.raw.signal };
      const metainfo = await parts.api.content.find(selector, context).catch((error) => {
        // The others may be readable.
        if (error instanceof MillraceError) return null;
        throw error;
      });
      if (metainfo === null) continue;
      torrents.push({
        hash: metainfo.infohashHex,
        title: (files.length === 1 ? text("title") : "") || metainfo.name,
        category: text("category"),
        poster: text("poster"),
        data: text("data"),
        magnet: null,
        addedS: Math.floor(parts.clock.now() / 1000),
        sizeBytes: 0,
        isSaved: form.has("save"),
        isLocal,
      });
    }
    return torrents;
  } finally {
    hold.release();
  }
}

async function formOf(bytes: Uint8Array<ArrayBuffer>, contentType: string): Promise<FormData> {
  try {
    return await new Response(bytes, { headers: { "content-type": contentType } }).formData();
  } catch {
    throw new MillraceError("invalid_argument", "a form with transport files is expected");
  }
}
