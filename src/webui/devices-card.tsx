/** @jsxImportSource hono/jsx/dom */
/** Devices of the household that are signed in to the page, each of which can be removed. */
import { type ApiDevice, call, ownDevice, signOutHere } from "./engine.ts";
import { useEffect, useState } from "./state.ts";
import { errorText, text, timeText } from "./texts.ts";

/** The card. */
export function DevicesCard() {
  const [devices, setDevices] = useState<readonly ApiDevice[]>([]);
  const [trouble, setTrouble] = useState("");
  const refused = (error: unknown) => setTrouble(errorText(error));
  const look = () => call<{ devices: ApiDevice[] }>("get_devices").then((got) => setDevices(got.devices), refused);
  useEffect(() => void look(), []);
  const remove = (id: number) => {
    setTrouble("");
    call("remove_device", { id: String(id) }).then(() => {
      if (id !== ownDevice()) return look();
      signOutHere();
      location.reload();
    }, refused);
  };
  return (
    <article class="card">
      <h2>{text("devices")}</h2>
      <ul class="rows">
        {devices.map(({ id, login, name, seen_at }) => (
          <li key={id}>
            <div>
              <strong>{[name || login, ...id === ownDevice() ? [text("thisDevice")] : []].join(" – ")}</strong>
              <small>{text("deviceSeen", login, timeText(seen_at))}</small>
            </div>
            <button type="button" aria-label={`${text("remove")}: ${name || login}`} onClick={() => remove(id)}>
              {text("remove")}
            </button>
          </li>
        ))}
      </ul>
      <p class="note">{text("devicesHint")}</p>
      <p role="alert">{trouble}</p>
    </article>
  );
}
