/** @jsxImportSource hono/jsx/dom */
/** The programme guides that are fetched: those of lists, and those that the user adds. */
import { call, type ExternalList } from "./engine.ts";
import { useEffect, useState } from "./state.ts";
import { errorText, text, timeText } from "./texts.ts";

/** A guide, as `epg_sources` returns it. Unix seconds, 0: never. */
interface GuideSource {
  readonly id: number;
  readonly url: string;
  readonly from_list: boolean;
  readonly last_update: number;
  readonly last_error: string;
  readonly programmes: number;
}

/** Properties of `Guides`. */
export interface GuidesProps {
  readonly failed: (error: unknown) => void;
  /** When they change, their guides may have, too. */
  readonly lists: readonly ExternalList[] | null;
}

/** The guides, with a field for another. */
export function Guides({ failed, lists }: GuidesProps) {
  const [sources, setSources] = useState<readonly GuideSource[]>([]);
  const [trouble, setTrouble] = useState("");
  const act = (work: () => Promise<unknown>) => {
    setTrouble("");
    work().catch((error) => {
      failed(error);
      setTrouble(errorText(error));
    }).then(() => call<{ sources: GuideSource[] }>("epg_sources"))
      .then(({ sources }) => setSources(sources), failed);
  };
  useEffect(() => act(() => Promise.resolve()), [lists]);
  const add = (event: Event) => {
    event.preventDefault();
    const form = event.target as HTMLFormElement;
    const url = String(new FormData(form).get("url")).trim();
    act(async () => {
      const id = await call<number>("epg_source_add", { url, update_now: "0" });
      form.reset();
      await call("epg_source_update", { id: String(id) });
    });
  };
  return (
    <section>
      <h2>{text("programmes")}</h2>
      <form class="add" onSubmit={add}>
        <label>
          {text("guideAddress")}
          <input name="url" type="url" required />
        </label>
        <button type="submit">{text("addGuide")}</button>
      </form>
      <p role="alert">{trouble}</p>
      <ul class="rows">
        {sources.map(({ id, url, from_list, last_update, last_error, programmes }) => (
          <li key={id}>
            <div>
              <strong>{url}</strong>
              <small>
                {last_update === 0 ? text("neverFetched") : text("fetched", timeText(last_update))} ·{" "}
                {text("guideCount", programmes)}
              </small>
              {last_error === "" ? null : <em>{text("failed", last_error)}</em>}
            </div>
            <button type="button" onClick={() => act(() => call("epg_source_update", { id: String(id) }))}>
              {text("updateNow")}
            </button>
            {from_list
              ? null
              : (
                <button type="button" onClick={() => act(() => call("epg_source_delete", { id: String(id) }))}>
                  {text("remove")}
                </button>
              )}
          </li>
        ))}
      </ul>
    </section>
  );
}
