/** Ids of the media server's entries. Each begins with the id of the list that holds it, so that an item may be in several lists. */

/** A list of items. */
export type ListName =
  | { readonly kind: "all" | "favourites" }
  | { readonly kind: "category"; readonly name: string };

/** A parsed id. */
export type ObjectId =
  | { readonly kind: "root" | "now" | "recordings" }
  /** 16 hexadecimal characters. */
  | { readonly kind: "recording"; readonly recording: string }
  /** A file that is playing now, or a broadcast. */
  | { readonly kind: "playing"; readonly infohashHex: string; readonly fileIndex: number | null }
  | { readonly kind: "list"; readonly list: ListName }
  | { readonly kind: "item"; readonly list: ListName; readonly item: number }
  /** One file of an item's torrent. */
  | { readonly kind: "file"; readonly list: ListName; readonly item: number; readonly fileIndex: number };

/** Longest id read, characters: a category of 1000 letters of three bytes each, written as `%XX`. */
const MAX_ID_CHARS = 9100;

/** Parses an id; null for one that this server never made. */
export function readObjectId(id: string): ObjectId | null {
  if (id === "0") return { kind: "root" };
  if (id === "now" || id === "recordings") return { kind: id };
  const recording = /^recordings\/([0-9a-f]{16})$/.exec(id)?.[1];
  if (recording !== undefined) return { kind: "recording", recording };
  const playing = /^now\/([0-9a-f]{40})(?:-(\d{1,9}))?$/.exec(id);
  if (playing !== null) {
    const [, infohashHex, index] = playing;
    return { kind: "playing", infohashHex: infohashHex!, fileIndex: index === undefined ? null : Number(index) };
  }
  const match = id.length > MAX_ID_CHARS ? null : /^([^/]+)(?:\/i(\d{1,15})(?:\/f(\d{1,9}))?)?$/.exec(id);
  const list = match === null ? null : readList(match[1]!);
  if (list === null) return null;
  const [, , item, file] = match!;
  if (item === undefined) return { kind: "list", list };
  if (file === undefined) return { kind: "item", list, item: Number(item) };
  return { kind: "file", list, item: Number(item), fileIndex: Number(file) };
}

/** The reverse of `readObjectId`. */
export function writeObjectId(id: ObjectId): string {
  switch (id.kind) {
    case "root":
      return "0";
    case "now":
    case "recordings":
      return id.kind;
    case "recording":
      return `recordings/${id.recording}`;
    case "playing":
      return `now/${id.infohashHex}${id.fileIndex === null ? "" : `-${id.fileIndex}`}`;
    case "list":
      return writeList(id.list);
    case "item":
      return `${writeList(id.list)}/i${id.item}`;
    case "file":
      return `${writeList(id.list)}/i${id.item}/f${id.fileIndex}`;
  }
}

/** Id of the entry that holds this one; `-1` for the root. */
export function parentOf(id: ObjectId): string {
  switch (id.kind) {
    case "root":
      return "-1";
    case "now":
    case "recordings":
    case "list":
      return "0";
    case "recording":
      return "recordings";
    case "playing":
      return "now";
    case "item":
      return writeList(id.list);
    case "file":
      return writeObjectId({ ...id, kind: "item" });
  }
}

function readList(text: string): ListName | null {
  if (text === "all" || text === "favourites") return { kind: text };
  if (!text.startsWith("c:")) return null;
  try {
    return { kind: "category", name: decodeURIComponent(text.slice(2)) };
  } catch {
    return null;
  }
}

function writeList(list: ListName): string {
  return list.kind === "category" ? `c:${encodeURIComponent(list.name.toWellFormed())}` : list.kind;
}
