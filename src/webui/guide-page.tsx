/** @jsxImportSource hono/jsx/dom */
/** The programme guide as a grid: a line per channel, time from left to right. The arrow keys move in it (`spatial.ts`). */
import { useRef } from "hono/jsx/dom";
import { call, type Item } from "./engine.ts";
import { Heading } from "./heading.tsx";
import { addressOf, titleOf } from "./item-row.tsx";
import type { ApiProgramme } from "./programme.ts";
import { RecordButton } from "./record-button.tsx";
import { useEffect, useState } from "./state.ts";
import { errorText, hourText, text, timeText } from "./texts.ts";

/** Properties of `GuidePage`. */
export interface GuidePageProps {
  readonly failed: (error: unknown) => void;
}

/** Time that the grid shows at once, and between two of its marks, s. */
const SHOWN_S = 3 * 3600;
const MARK_S = 1800;
/** Channels looked at once; those without a guide are left out. */
const PAGE_CHANNELS = 100;
/** Pages looked at for one that has channels with a guide. */
const MAX_PAGES = 30;

/** A channel with its programmes in the time that is shown. */
interface Line {
  readonly item: Item;
  readonly programmes: readonly ApiProgramme[];
}

/** Channels that have a guide, and the page of the library after them; null: there are no more. */
interface Channels {
  readonly items: readonly Item[];
  readonly next: number | null;
}

/** What was chosen in the grid. */
interface Chosen {
  readonly item: Item;
  readonly programme: ApiProgramme;
}

/** The room of the grid. */
export function GuidePage({ failed }: GuidePageProps) {
  const [fromS, setFrom] = useState(markBefore(Date.now() / 1000));
  const [channels, setChannels] = useState<Channels>({ items: [], next: 0 });
  const [lines, setLines] = useState<readonly Line[] | null>(null);
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const [trouble, setTrouble] = useState("");
  const refused = (error: unknown) => {
    failed(error);
    setTrouble(errorText(error));
  };
  const more = () => moreChannels(channels).then(setChannels, refused);
  useEffect(() => void more(), []);
  useEffect(() => {
    let isStale = false;
    if (channels.next === 0) return;
    linesOf(channels.items, fromS).then((news) => isStale || setLines(news), refused);
    return () => {
      isStale = true;
    };
  }, [channels, fromS]);
  const marks = Array.from({ length: SHOWN_S / MARK_S }, (_, at) => fromS + at * MARK_S);
  return (
    <section class="guide">
      <Heading words={text("programmes")} />
      <p role="alert">{trouble}</p>
      <div class="actions">
        <button type="button" onClick={() => setFrom(fromS - SHOWN_S)}>{text("earlier")}</button>
        <button type="button" onClick={() => setFrom(markBefore(Date.now() / 1000))}>{text("onNow")}</button>
        <button type="button" onClick={() => setFrom(fromS + SHOWN_S)}>{text("later")}</button>
        <span role="status">{timeText(fromS)}</span>
      </div>
      {lines === null
        ? <p class={trouble === "" ? "flow" : ""} />
        : lines.length === 0
        ? <p class="note">{text("noGuide")}</p>
        : (
          <div class="grid">
            <div class="line">
              <span class="name" />
              <div class="time">
                {marks.map((mark) => <time key={mark} style={{ left: placed(mark, fromS) }}>{hourText(mark)}</time>)}
              </div>
            </div>
            {lines.map((line) => <GridLine key={line.item.id} line={line} fromS={fromS} choose={setChosen} />)}
          </div>
        )}
      {channels.next === null || lines === null
        ? null
        : <button type="button" onClick={() => void more()}>{text("more")}</button>}
      {chosen === null ? null : <ChosenDialog chosen={chosen} close={() => setChosen(null)} />}
    </section>
  );
}

/** Properties of `GridLine`. */
interface GridLineProps {
  readonly line: Line;
  readonly fromS: number;
  readonly choose: (chosen: Chosen) => void;
}

function GridLine({ line: { item, programmes }, fromS, choose }: GridLineProps) {
  const address = addressOf(item);
  const nowS = Date.now() / 1000;
  return (
    <div class="line">
      {address === null
        ? <span class="name">{titleOf(item)}</span>
        : <a class="name" href={address}>{titleOf(item)}</a>}
      <div class="time">
        {programmes.map((programme) => {
          const { start, stop, title } = programme;
          const isOn = start <= nowS && nowS < stop;
          const left = Math.max(start, fromS);
          const width = `${100 * (Math.min(stop, fromS + SHOWN_S) - left) / SHOWN_S}%`;
          return (
            <button
              key={start}
              type="button"
              class={isOn ? "on" : ""}
              aria-current={isOn ? "time" : undefined}
              aria-label={`${hourText(start)} ${title}, ${titleOf(item)}`}
              style={{ left: placed(left, fromS), width }}
              onClick={() => choose({ item, programme })}
            >
              {title}
            </button>
          );
        })}
      </div>
    </div>
  );
}

function ChosenDialog({ chosen: { item, programme }, close }: { readonly chosen: Chosen; readonly close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current!;
    element.addEventListener("close", close);
    element.showModal();
    return () => element.removeEventListener("close", close);
  }, []);
  const { start, stop, title, subtitle, description, categories, episode } = programme;
  const address = addressOf(item);
  const nowS = Date.now() / 1000;
  return (
    <dialog ref={dialog} class="sheet" aria-label={title}>
      <h2>{title}</h2>
      <p>
        {titleOf(item)} · {timeText(start)}–{hourText(stop)} {subtitle === "" ? null : <b>{subtitle}</b>}
      </p>
      <p class="note">{[episode, ...categories].filter((fact) => fact !== "").join(" · ")}</p>
      {description === "" ? null : <p>{description}</p>}
      <div class="actions">
        {address === null || start > nowS ? null : <a class="button" href={address}>{text("play")}</a>}
        {stop <= nowS ? null : <RecordButton id={item.id} programmeS={start} title={title} />}
        <button type="button" class="big" onClick={() => dialog.current!.close()}>{text("close")}</button>
      </div>
    </dialog>
  );
}

/** How far from the left a time stands. */
function placed(atS: number, fromS: number): string {
  return `${100 * (atS - fromS) / SHOWN_S}%`;
}

function markBefore(unixS: number): number {
  return Math.floor(unixS / MARK_S) * MARK_S;
}

/** `channels` and the next ones that have a guide. */
async function moreChannels({ items, next }: Channels): Promise<Channels> {
  if (next === null) return { items, next };
  for (let page = next; page < next + MAX_PAGES; page++) {
    const { total, results } = await call<{ total: number; results: { items: Item[] }[] }>("search", {
      group_by_channels: "1",
      page: String(page),
      page_size: String(PAGE_CHANNELS),
      show_epg: "1",
    });
    const found = results.map(({ items }) => items[0]!).filter(({ epg }) => epg?.now || epg?.next);
    const isLast = (page + 1) * PAGE_CHANNELS >= total;
    if (found.length > 0 || isLast) return { items: [...items, ...found], next: isLast ? null : page + 1 };
  }
  return { items, next: next + MAX_PAGES };
}

/** What is on these channels in the time that is shown. */
async function linesOf(items: readonly Item[], fromS: number): Promise<Line[]> {
  const lines: Line[] = [];
  for (let at = 0; at < items.length; at += PAGE_CHANNELS) {
    const part = items.slice(at, at + PAGE_CHANNELS);
    const { channels } = await call<{ channels: { playlist_item_id: number; programmes: ApiProgramme[] }[] }>(
      "epg_get",
      {
        playlist_item_id: part.map(({ id }) => id).join(),
        from: String(fromS),
        to: String(fromS + SHOWN_S),
        language: navigator.languages.slice(0, 8).join(),
      },
    );
    const byId = new Map(channels.map(({ playlist_item_id: id, programmes }) => [id, programmes]));
    lines.push(...part.map((item) => ({ item, programmes: byId.get(item.id) ?? [] })));
  }
  return lines;
}
