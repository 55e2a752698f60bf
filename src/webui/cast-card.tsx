/** @jsxImportSource hono/jsx/dom */
/** Which other engines may play their streams here, and those that ask. */
import { type ApiCastSenders, call } from "./engine.ts";
import { useState } from "./state.ts";
import { errorText, text } from "./texts.ts";

/** Digits of a key that people compare. */
const SHOWN_DIGITS = 12;

/** Properties of `CastCard`. */
export interface CastCardProps {
  readonly senders: ApiCastSenders;
  /** They are to be read again. */
  readonly changed: () => void;
}

/** The card; nothing where the engine takes no streams of others. */
export function CastCard({ senders: { key, pending, allowed }, changed }: CastCardProps) {
  const [trouble, setTrouble] = useState("");
  const decide = (sender: string, value: boolean) => {
    setTrouble("");
    call("set_cast_sender", { key: sender, value: value ? "1" : "0" })
      .catch((error) => setTrouble(errorText(error))).then(changed);
  };
  const button = (label: "castAllow" | "castRefuse" | "remove", sender: string, value: boolean) => (
    <button
      type="button"
      onClick={() => decide(sender, value)}
    >
      {text(label)}
    </button>
  );
  if (key === null) return null;
  return (
    <article class="card">
      <h2>{text("otherEngines")}</h2>
      <ul class="rows">
        {pending.map((sender) => (
          <li key={sender.key} class="pending">
            <div>
              <strong>{text("castAsks", sender.name || text("engine"))}</strong>
              <small>{sender.host} · {sender.key.slice(0, SHOWN_DIGITS)}</small>
            </div>
            {button("castAllow", sender.key, true)}
            {button("castRefuse", sender.key, false)}
          </li>
        ))}
        {allowed.map((sender) => (
          <li key={sender.key}>
            <div>
              <strong>{sender.name || text("engine")}</strong>
              <small>{sender.key.slice(0, SHOWN_DIGITS)}</small>
            </div>
            {button("remove", sender.key, false)}
          </li>
        ))}
      </ul>
      <p class="note">{text("castHint", key.slice(0, SHOWN_DIGITS))}</p>
      <p role="alert">{trouble}</p>
    </article>
  );
}
