/** @jsxImportSource hono/jsx/dom */
/** Broadcasting: start one from a file or an address, see which members it reaches and on which paths. */
import { Heading } from "./heading.tsx";
import { type ApiBroadcast, call } from "./engine.ts";
import { copyText } from "./insecure.ts";
import { playHash } from "./naming.ts";
import { MemberRows } from "./peer-list.tsx";
import { useEffect, useState } from "./state.ts";
import { SwarmPicture } from "./swarm-picture.tsx";
import { bytesText, codeOf, errorText, failureText, text } from "./texts.ts";

/** Time between two checks, ms. */
const LOOK_EVERY_MS = 2000;

/** Properties of `BroadcastPage`. */
export interface BroadcastPageProps {
  readonly failed: (error: unknown) => void;
}

/** The room of broadcasts. */
export function BroadcastPage({ failed }: BroadcastPageProps) {
  const [list, setList] = useState<readonly ApiBroadcast[] | null>(null);
  const [isStarting, setStarting] = useState(false);
  const [trouble, setTrouble] = useState("");
  const refused = (error: unknown) => setTrouble(errorText(error));
  const look = async () => setList((await call<{ broadcasts: ApiBroadcast[] }>("broadcast_list")).broadcasts);
  useEffect(() => {
    const ending = new AbortController();
    const run = async () => {
      while (!ending.signal.aborted) {
        await look().catch((error) => {
          failed(error);
          refused(error);
        });
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
      }
    };
    void run();
    return () => ending.abort();
  }, []);
  const start = (event: Event) => {
    event.preventDefault();
    const form = event.target as HTMLFormElement;
    const value = (name: string) => String(new FormData(form).get(name)).trim();
    setTrouble("");
    setStarting(true);
    call("broadcast_start", { source: value("source"), name: value("name") })
      .then(() => {
        form.reset();
        return look();
      }).catch(refused).then(() => setStarting(false));
  };
  return (
    <section class="broadcast">
      <Heading words={text("broadcast")} />
      <form class="add" onSubmit={start}>
        <label>
          {text("source")}
          <input
            name="source"
            type="text"
            required
            placeholder="/home/anna/talk.mp4 · http://… · udp://239.1.2.3:1234"
          />
        </label>
        <label>
          {text("name")}
          <input name="name" type="text" required />
        </label>
        <button type="submit" disabled={isStarting}>{text("startBroadcast")}</button>
      </form>
      <p class={isStarting ? "flow note" : "note"} aria-live="polite">
        {text(isStarting ? "waitsForSource" : "sourceHint")}
      </p>
      <p role="alert">{trouble}</p>
      {list?.length === 0
        ? (
          <div class="empty">
            <h2>{text("noBroadcasts")}</h2>
          </div>
        )
        : null}
      {(list ?? []).map((broadcast) => (
        <BroadcastCard
          key={broadcast.infohash}
          broadcast={broadcast}
          stop={() => void call("broadcast_stop", { infohash: broadcast.infohash }).then(look).catch(refused)}
        />
      ))}
    </section>
  );
}

function BroadcastCard({ broadcast, stop }: { readonly broadcast: ApiBroadcast; readonly stop: () => void }) {
  const { title, source, content_id, input, upload, peers, members, lost, ended, error, error_code } = broadcast;
  const [note, setNote] = useState("");
  const copy = () => copyText(content_id).then((isCopied) => setNote(isCopied ? text("copied") : content_id));
  const state = error !== null
    ? failureText(error, codeOf(error_code))
    : (ended ? text("ended") : lost === null ? "" : text("sourceLost", lost));
  const figures = [
    text("input", input === null ? "…" : bytesText(input)),
    text("up", bytesText(upload)),
    text("peers", peers),
  ];
  return (
    <article class="card wide">
      <h2>
        {title} <em>{ended ? "" : text("live")}</em>
      </h2>
      <p class="note">{source}</p>
      <p class="figures">{figures.join(" · ")}</p>
      {state === "" ? null : <p class="status trouble" role="status">{state}</p>}
      <SwarmPicture members={members} />
      {members.length === 0 ? <p class="note">{text("noViewers")}</p> : (
        <details class="peers">
          <summary>{text("whoSends", members.length)}</summary>
          <table>
            <MemberRows list={members} />
          </table>
        </details>
      )}
      <p class="secret">
        <code>{content_id}</code>
      </p>
      <div class="actions">
        <button type="button" onClick={() => void copy()}>{text("copyId")}</button>
        <a class="button" href={playHash(content_id)}>{text("watch")}</a>
        <button type="button" onClick={stop}>{text(ended ? "remove" : "stop")}</button>
        <span class="note" aria-live="polite">{note}</span>
      </div>
    </article>
  );
}
