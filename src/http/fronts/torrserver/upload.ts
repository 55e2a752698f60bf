/** `/torrent/upload`: transport files as parts of a form, under any name. */
import { MillraceError } from "../../../errors.ts";
import type { HttpContext, HttpParts } from "../../context.ts";
import { withForm } from "../requests.ts";
import type { TorrServerTorrent } from "./kept.ts";

/** Largest body, bytes: a transport file of 16 MiB and the fields around it. */
const MAX_BODY_BYTES = 17 * 1024 * 1024;
/** Transport files of one body. */
const MAX_FILES = 50;

/** The torrents of the files that can be read. Throws `invalid_argument` where the body is no form. */
export async function uploadedTorrents(c: HttpContext, parts: HttpParts): Promise<TorrServerTorrent[]> {
  const { isLocal } = c.get("caller");
  return await withForm(c, parts, MAX_BODY_BYTES, async (form) => {
    const text = (name: string) => {
      const value = form.get(name);
      return typeof value === "string" ? value : "";
    };
    const files = [...form.values()].filter((value): value is File => value instanceof File).slice(0, MAX_FILES);
    const torrents: TorrServerTorrent[] = [];
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
  });
}
