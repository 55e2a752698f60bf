/** @jsxImportSource hono/jsx/dom */
/** What is cached, by torrent: how much of each is here, removing one or all, and the limit. */
import { type ApiSettings, call, EngineError } from "./engine.ts";
import { playHash } from "./naming.ts";
import { useEffect, useState } from "./state.ts";
import { bytesText, errorText, text } from "./texts.ts";

/** Lines that are shown at first, and more at each request. */
const STEP = 20;
/** Lines of one call: the most that the engine returns. */
const CALL_LINES = 200;
/** Time between two looks, ms: each reads the names of what is listed. */
const LOOK_EVERY_MS = 5000;
const GIGABYTE = 1e9;
/** What `--cache-limit` is without a value, bytes. */
const DEFAULT_LIMIT_BYTES = { disk: 10 * 2 ** 30, ram: 2 ** 29 };

/** A torrent of which something is cached, as `storage_list` returns it. Bytes. */
interface ApiCachedTorrent {
  readonly infohash: string;
  readonly name: string | null;
  readonly used: number;
  readonly size: number;
  readonly in_use: boolean;
}

/** What `storage_list` returns. Bytes. */
export interface ApiStorage {
  readonly kind: ApiSettings["cache"]["kind"];
  /** 0: none. */
  readonly limit: number;
  readonly used: number;
  readonly total: number;
  readonly torrents: readonly ApiCachedTorrent[];
}

/** The first `lines` lines. Rejects with `EngineError`. */
export async function readStorage(lines = STEP): Promise<ApiStorage> {
  const torrents: ApiCachedTorrent[] = [];
  for (;;) {
    const count = Math.min(CALL_LINES, lines - torrents.length);
    const found = await call<ApiStorage>("storage_list", { first: String(torrents.length), count: String(count) });
    torrents.push(...found.torrents);
    if (torrents.length >= Math.min(lines, found.total) || found.torrents.length === 0) return { ...found, torrents };
  }
}

/** Properties of `StorageCard`. */
export interface StorageCardProps {
  /** What the card shows at first: a card that grows later would move what has the focus out of sight. */
  readonly first: ApiStorage;
  /** Other cards show what is cached, too. */
  readonly changed: () => void;
}

/** The card. */
export function StorageCard({ first, changed }: StorageCardProps) {
  const [storage, setStorage] = useState(first);
  const [lines, setLines] = useState(STEP);
  const [turn, setTurn] = useState(0);
  const [note, setNote] = useState("");
  useEffect(() => {
    const ending = new AbortController();
    const look = async () => {
      while (!ending.signal.aborted) {
        // Without an answer the last one stays; the room says that the engine is gone.
        const found = await readStorage(lines).catch(() => null);
        if (ending.signal.aborted) return;
        if (found !== null) setStorage(found);
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
      }
    };
    void look();
    return () => ending.abort();
  }, [lines, turn]);
  const act = async (work: Promise<string>, refused: (error: unknown) => string) => {
    setNote("");
    setNote(await work.catch(refused));
    setTurn((before) => before + 1);
    changed();
  };
  const remove = (infohash: string | null) => {
    const work = call<{ freed: number }>("storage_remove", infohash === null ? {} : { infohash });
    void act(work.then(({ freed }) => text("storageFreed", bytesText(freed))), refusal);
  };
  const limit = (gigabytes: number) => {
    const bytes = String(Math.round(gigabytes * GIGABYTE));
    // The engine's own words: at least so much, or kept torrents need more.
    const refused = (error: unknown) => text("failed", errorText(error));
    void act(call("storage_limit", { bytes }).then(() => text("saved")), refused);
  };
  return (
    <article class="card wide storage">
      <h2>{text("storage")}</h2>
      <Usage storage={storage} />
      {storage.kind === "seed"
        ? <p class="note">{text("storageOwn")}</p>
        : <LimitForm limit={storage.limit} initial={DEFAULT_LIMIT_BYTES[storage.kind]} save={limit} />}
      {storage.torrents.length === 0 ? <p class="note">{text("storageEmpty")}</p> : null}
      <ul class="rows">
        {storage.torrents.map((torrent) => (
          <Line
            key={torrent.infohash}
            torrent={torrent}
            remove={storage.kind === "seed" ? null : () => remove(torrent.infohash)}
          />
        ))}
      </ul>
      <div class="actions">
        {storage.total > storage.torrents.length
          ? <button type="button" onClick={() => setLines(lines + STEP)}>{text("more")}</button>
          : null}
        {storage.kind === "seed" || storage.total === 0 ? null : <EmptyButton empty={() => remove(null)} />}
      </div>
      <p class="note" aria-live="polite">{note}</p>
    </article>
  );
}

/** What somebody may do whose removal is refused: `conflict` is what plays. */
function refusal(error: unknown): string {
  return error instanceof EngineError && error.code === 8 ? text("storagePlays") : text("failed", errorText(error));
}

function Usage({ storage: { limit, used } }: { readonly storage: ApiStorage }) {
  return (
    <p class="usage">
      {limit === 0 ? bytesText(used) : text("usedOf", bytesText(used), bytesText(limit))}
      {limit === 0 ? null : <progress max={limit} value={Math.min(used, limit)} aria-label={text("storage")} />}
    </p>
  );
}

interface LimitFormProps {
  /** Bytes, now and without an option. */
  readonly limit: number;
  readonly initial: number;
  readonly save: (gigabytes: number) => void;
}

function LimitForm({ limit, initial, save }: LimitFormProps) {
  const submit = (event: Event) => {
    event.preventDefault();
    save(Number(new FormData(event.target as HTMLFormElement).get("gigabytes")));
  };
  return (
    <form class="cap" onSubmit={submit}>
      <label>
        {text("storageLimit")}
        <input name="gigabytes" type="number" min={0} step="any" value={Math.round(limit / GIGABYTE * 100) / 100} />
      </label>
      <button type="submit">{text("save")}</button>
      <p class="note">{text("storageHint", bytesText(initial))}</p>
    </form>
  );
}

interface LineProps {
  readonly torrent: ApiCachedTorrent;
  /** null: files of the user's own. */
  readonly remove: (() => void) | null;
}

function Line({ torrent: { infohash, name, used, size, in_use }, remove }: LineProps) {
  const title = name ?? infohash;
  const percent = size === 0 ? 0 : Math.floor(used / size * 100);
  return (
    <li>
      <div>
        <a href={playHash(infohash)}>{title}</a>
        <small>
          {text("storageShare", bytesText(used), bytesText(size), percent)}
          {in_use ? <em>{` · ${text("storageInUse")}`}</em> : null}
        </small>
        <progress max={Math.max(1, size)} value={Math.min(used, size)} aria-label={title} />
      </div>
      {remove === null
        ? null
        : (
          <button type="button" disabled={in_use} aria-label={`${text("remove")}: ${title}`} onClick={remove}>
            {text("remove")}
          </button>
        )}
    </li>
  );
}

/** Asks once more where it stands, so that a remote's OK does it and one slip does not. */
function EmptyButton({ empty }: { readonly empty: () => void }) {
  const [asks, setAsks] = useState(false);
  const press = () => {
    if (asks) empty();
    setAsks(!asks);
  };
  return (
    <button type="button" class={asks ? "sure" : ""} onClick={press} onBlur={() => setAsks(false)}>
      {text(asks ? "storageSure" : "storageEmptyAll")}
    </button>
  );
}
