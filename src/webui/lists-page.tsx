/** @jsxImportSource hono/jsx/dom */
/** Lists that are fetched regularly, and the trash. */
import { Heading } from "./heading.tsx";
import { Guides } from "./guides-list.tsx";
import { call, type ExternalList, type Item } from "./engine.ts";
import { useEffect, useState } from "./state.ts";
import { errorText, listFailureText, text, timeText } from "./texts.ts";

/** Properties of `ListsPage`. */
export interface ListsPageProps {
  readonly failed: (error: unknown) => void;
}

/** Choices of how often a list is fetched, s; 0: by hand alone. */
const INTERVALS_S = [0, 3600, 6 * 3600, 24 * 3600];
/** As the engine takes it. */
const MAX_CONNECTIONS = 1000;
/** Items of the trash that are shown; the rest is counted. */
const MAX_TRASH = 200;

/** The room of lists and trash. */
export function ListsPage({ failed }: ListsPageProps) {
  const [lists, setLists] = useState<readonly ExternalList[] | null>(null);
  const [trash, setTrash] = useState<readonly Item[]>([]);
  const [busy, setBusy] = useState(0);
  const [trouble, setTrouble] = useState("");
  const load = async () => {
    setLists((await call<{ playlist: ExternalList[] }>("external_playlist_get")).playlist);
    setTrash((await call<{ data: Item[] }>("playlist_trash_get")).data);
  };
  /** Runs a button's action, shows its result, and reads everything again. */
  const act = (work: () => Promise<unknown>) => {
    setBusy((count) => count + 1);
    setTrouble("");
    work().catch((error) => {
      failed(error);
      setTrouble(errorText(error));
    }).then(load).catch(failed).then(() => setBusy((count) => count - 1));
  };
  useEffect(() => act(() => Promise.resolve()), []);
  const add = (event: Event) => {
    event.preventDefault();
    const form = event.target as HTMLFormElement;
    const value = (name: string) => String(new FormData(form).get(name)).trim();
    const params = {
      type: "broadcast",
      category: "",
      name: value("name") || value("url"),
      url: value("url"),
      update_interval: value("interval"),
      max_connections: value("connections") || "0",
    };
    act(async () => {
      await call("external_playlist_add", params);
      form.reset();
    });
  };
  return (
    <section class="lists">
      <Heading words={text("lists")} />
      <form class="add" onSubmit={add}>
        <label>
          {text("address")}
          <input name="url" type="url" required />
        </label>
        <label>
          {text("name")}
          <input name="name" type="text" />
        </label>
        <label>
          {text("howOften")}
          <select name="interval">
            {INTERVALS_S.map((seconds) => (
              <option key={seconds} value={seconds} selected={seconds === 24 * 3600}>{intervalText(seconds)}</option>
            ))}
          </select>
        </label>
        <label>
          {text("connections")}
          <input name="connections" type="number" min="0" max={MAX_CONNECTIONS} value="0" />
        </label>
        <button type="submit">{text("addList")}</button>
      </form>
      <p role="alert">{trouble}</p>
      <p class={busy > 0 ? "flow" : ""} aria-live="polite">{lists?.length === 0 ? text("noLists") : ""}</p>
      <ul class="rows">
        {(lists ?? []).map((list) => (
          <li key={list.id}>
            <div>
              <strong>{list.name}</strong>
              <small>{list.url}</small>
              <small>{scheduleText(list)}</small>
              {list.last_error ? <em>{listFailureText(list.last_error, list.last_error_code ?? null)}</em> : null}
            </div>
            <label>
              {text("connections")}
              <input
                type="number"
                min="0"
                max={MAX_CONNECTIONS}
                value={list.max_connections}
                onChange={(event: Event) => act(() => limit(list, (event.target as HTMLInputElement).value))}
              />
            </label>
            <button type="button" onClick={() => act(() => call("external_playlist_update", { id: String(list.id) }))}>
              {text("updateNow")}
            </button>
            <button type="button" onClick={() => act(() => call("external_playlist_delete", { id: String(list.id) }))}>
              {text("remove")}
            </button>
          </li>
        ))}
      </ul>
      <Guides failed={failed} lists={lists} />
      <h2>{text("trashTitle", trash.length)}</h2>
      {trash.length === 0
        ? null
        : <button type="button" onClick={() => act(() => call("playlist_trash_clear"))}>{text("emptyTrash")}</button>}
      <ul class="rows">
        {trash.slice(0, MAX_TRASH).map((item) => (
          <li key={item.id}>
            <div>{item.display_title ?? item.title}</div>
            <button type="button" onClick={() => act(() => call("playlist_restore_item", { id: String(item.id) }))}>
              {text("restore")}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Notes how many connections the provider of a list allows. */
function limit({ id, category, name, update_interval }: ExternalList, connections: string): Promise<unknown> {
  const same = { id: String(id), category, name, update_interval: String(update_interval) };
  return call("external_playlist_edit", { ...same, max_connections: connections || "0" });
}

function intervalText(seconds: number): string {
  return seconds === 0 ? text("byHand") : text("everyHours", seconds / 3600);
}

function scheduleText({ last_update: last, next_update: next, update_interval: interval }: ExternalList): string {
  const before = last === 0 ? text("neverFetched") : text("fetched", timeText(last));
  return interval === 0 ? before : `${before} · ${text("nextFetch", timeText(next))}`;
}
