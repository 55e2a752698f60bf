/** @jsxImportSource hono/jsx/dom */
/** What is on a channel: in a line, and as the list of its programmes. */
import { call } from "./engine.ts";
import type { Stream } from "./naming.ts";
import type { ApiProgramme, Epg } from "./programme.ts";
import { RecordButton } from "./record-button.tsx";
import { useEffect, useState } from "./state.ts";
import { dayText, errorText, hourText, text } from "./texts.ts";

/** How far the list reaches back and ahead, s. */
const BEFORE_S = 6 * 3600;
const AFTER_S = 3 * 86_400;
/** What is on the broadcast that plays is asked for again after this, ms. */
const ON_AIR_EVERY_MS = 60_000;

/** What is on, until when, and what is next; nothing where that is not known. */
export function OnNow({ epg }: { readonly epg: Epg | undefined }) {
  const { now = null, next = null } = epg ?? {};
  if (now === null && next === null) return null;
  return (
    <span class="on">
      {now === null ? null : <b>{text("onUntil", now.title, hourText(now.stop))}</b>}
      {now === null || next === null ? null : " · "}
      {next === null ? null : text("onFrom", hourText(next.start), next.title)}
    </span>
  );
}

/** What is on the broadcast that plays, asked for again each minute. */
export function OnAir({ stream, infohash }: { readonly stream: Stream; readonly infohash: string }) {
  const [epg, setEpg] = useState<Epg | undefined>(undefined);
  useEffect(() => {
    const { item = "", content_id = "" } = stream;
    const selectors = { playlist_item_id: item, infohash: content_id === "" ? infohash : "", content_id };
    const named = Object.entries(selectors).filter(([, value]) => value !== "").slice(0, 1);
    if (named.length === 0) return;
    const language = navigator.languages.slice(0, 8).join();
    const look = () => {
      // Without a token there is less to show, and nothing to complain of.
      call<{ channels: { programmes: ApiProgramme[] }[] }>("epg_get", { ...Object.fromEntries(named), language })
        .then(({ channels }) => setEpg(nowAndNext(channels.flatMap(({ programmes }) => programmes))), () => {});
    };
    look();
    const timer = setInterval(look, ON_AIR_EVERY_MS);
    return () => clearInterval(timer);
  }, [infohash, stream["item"]]);
  return (
    <p class="note">
      <OnNow epg={epg} />
    </p>
  );
}

function nowAndNext(programmes: readonly ApiProgramme[]): Epg {
  const nowS = Date.now() / 1000;
  return {
    now: programmes.find(({ start, stop }) => start <= nowS && nowS < stop) ?? null,
    next: programmes.find(({ start }) => start > nowS) ?? null,
  };
}

/** The programmes of an item's channel, day by day; each opens to what it is about. */
export function ProgrammeList({ id }: { readonly id: number }) {
  const [programmes, setProgrammes] = useState<readonly ApiProgramme[] | null>(null);
  const [trouble, setTrouble] = useState("");
  const nowS = Math.floor(Date.now() / 1000);
  useEffect(() => {
    const params = {
      playlist_item_id: String(id),
      from: String(nowS - BEFORE_S),
      to: String(nowS + AFTER_S),
      language: navigator.languages.slice(0, 8).join(),
    };
    call<{ channels: { programmes: ApiProgramme[] }[] }>("epg_get", params)
      .then(
        ({ channels: [channel] }) => setProgrammes(channel?.programmes ?? []),
        (error) => setTrouble(errorText(error)),
      );
  }, [id]);
  if (trouble !== "") return <p role="alert">{trouble}</p>;
  if (programmes === null) return null;
  if (programmes.length === 0) return <p class="note">{text("noProgrammes")}</p>;
  const days = new Map<string, ApiProgramme[]>();
  for (const programme of programmes) {
    const day = dayText(programme.start);
    days.set(day, [...days.get(day) ?? [], programme]);
  }
  return (
    <div class="programmes">
      {[...days].map(([day, all]) => (
        <section key={day}>
          <h3>{day}</h3>
          <ol>
            {all.map((one) => (
              <li key={one.start}>
                <OneProgramme id={id} programme={one} nowS={nowS} />
              </li>
            ))}
          </ol>
        </section>
      ))}
    </div>
  );
}

interface OneProgrammeProps {
  /** Number of the channel's item. */
  readonly id: number;
  readonly programme: ApiProgramme;
  readonly nowS: number;
}

function OneProgramme({ id, programme, nowS }: OneProgrammeProps) {
  const { start, stop, title, subtitle, description, categories, episode, year } = programme;
  const isOn = start <= nowS && nowS < stop;
  const facts = [episode, ...categories, year === null ? "" : String(year)].filter((fact) => fact !== "").join(" · ");
  return (
    <details class={isOn ? "on" : stop <= nowS ? "over" : ""}>
      <summary aria-current={isOn ? "time" : undefined}>
        <time dateTime={new Date(start * 1000).toISOString()}>{hourText(start)}</time> {title}
        {isOn ? <progress max={stop - start} value={nowS - start} aria-label={title} /> : null}
      </summary>
      <p>
        {hourText(start)}–{hourText(stop)} {subtitle === "" ? null : <b>{subtitle}</b>}
        {facts === "" ? null : <small>{facts}</small>}
      </p>
      {description === "" ? null : <p>{description}</p>}
      {stop <= nowS ? null : <RecordButton id={id} programmeS={start} title={title} />}
    </details>
  );
}
