/** @jsxImportSource hono/jsx/dom */
/** Cards of the settings: the engine, who may call it, how fast it may be, its token. */
import { type ApiSettings, call, callPublic } from "./engine.ts";
import { copyText } from "./insecure.ts";
import { isLoopback } from "./naming.ts";
import { QrCode } from "./qr.tsx";
import { useState } from "./state.ts";
import { bytesText, errorText, text } from "./texts.ts";

/** Bytes per second of 1 Mbit/s. */
const MEGABIT = 125_000;

/** Properties of cards that show settings. */
export interface CardProps {
  readonly settings: ApiSettings;
}

/** Properties of cards that change them. */
export interface ChangingCardProps extends CardProps {
  /** They are to be read again. */
  readonly changed: () => void;
}

/** The running engine, its connections, and how full its cache is. */
export function EngineCard({ settings }: CardProps) {
  const { version, runtime, network, cache, swarms, peers, sessions } = settings;
  const sources = (["dht", "pex", "lsd"] as const).filter((name) => network[name]).map((name) => name.toUpperCase());
  return (
    <article class="card">
      <h2>{text("engine")}</h2>
      <p class={network.connected ? "lamp on" : "lamp"}>{text(network.connected ? "connected" : "notConnected")}</p>
      <dl>
        <dt>{text("version")}</dt>
        <dd>{version.version} · {runtime} · {version.platform}</dd>
        <dt>{text("nowRunning")}</dt>
        <dd>{text("counts", swarms, peers, sessions)}</dd>
        <dt>{text("peerPort")}</dt>
        <dd>{network.peer_port ?? "—"} · {sources.join(", ") || "—"}</dd>
        <dt>{text(cache.kind === "ram" ? "cacheRam" : "cacheDisk")}</dt>
        <dd>
          {cache.limit === 0 ? bytesText(cache.used) : text("usedOf", bytesText(cache.used), bytesText(cache.limit))}
          {cache.limit === 0
            ? null
            : <progress max={cache.limit} value={Math.min(cache.used, cache.limit)} aria-label={text("cache")} />}
        </dd>
      </dl>
    </article>
  );
}

/** The card with the access rules: which machines may call. */
export function AccessCard({ settings: { access }, changed }: ChangingCardProps) {
  const [trouble, setTrouble] = useState("");
  const toggle = (method: string, value: boolean) => {
    setTrouble("");
    call(method, { value: value ? "1" : "0" }).catch((error) => setTrouble(errorText(error)))
      .then(changed);
  };
  const rows = [
    ["set_allow_intranet_access", "allowIntranet", access.intranet],
    ["set_allow_remote_access", "allowInternet", access.internet],
  ] as const;
  return (
    <article class="card">
      <h2>{text("access")}</h2>
      {rows.map(([method, label, value]) => (
        <label key={method} class="switch">
          <input
            type="checkbox"
            role="switch"
            checked={value}
            onChange={(event: Event) => toggle(method, (event.target as HTMLInputElement).checked)}
          />
          <span>{text(label)}</span>
        </label>
      ))}
      <p class="note">{text("accessHint")}</p>
      <p role="alert">{trouble}</p>
    </article>
  );
}

/** How fast it may download and upload, and whether films wait for slow peers. */
export function LimitsCard({ settings: { limits, cushion }, changed }: ChangingCardProps) {
  const [note, setNote] = useState("");
  const submit = (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.target as HTMLFormElement);
    const bytes = (name: string) => String(Math.round(Number(form.get(name)) * MEGABIT));
    call("set_limits", { download: bytes("download"), upload: bytes("upload") }).then(() => {
      setNote(text("saved"));
      changed();
    }, (error) => setNote(errorText(error)));
  };
  const wait = (value: boolean) => {
    call("set_cushion", { value: value ? "auto" : "off" })
      .catch((error) => setNote(text("failed", error.message || text("engineGone")))).then(changed);
  };
  const shown = (bytes: number) => Math.round(bytes / MEGABIT * 100) / 100;
  return (
    <article class="card">
      <h2>{text("limits")}</h2>
      <form class="limits" onSubmit={submit}>
        <label>
          {text("limitDown")}
          <input name="download" type="number" min={0} step="any" value={shown(limits.download)} />
        </label>
        <label>
          {text("limitUp")}
          <input name="upload" type="number" min={0} step="any" value={shown(limits.upload)} />
        </label>
        <button type="submit">{text("save")}</button>
      </form>
      <label class="switch">
        <input
          type="checkbox"
          role="switch"
          checked={cushion !== "off"}
          onChange={(event: Event) => wait((event.target as HTMLInputElement).checked)}
        />
        <span>{text("waitForPeers")}</span>
      </label>
      <p class="note" aria-live="polite">{note === "" ? text("limitsHint", limits.max_peers) : note}</p>
    </article>
  );
}

/** The access token, for other devices and programs, and the list for their players. */
export function TokenCard() {
  const [token, setToken] = useState("");
  const [list, setList] = useState("");
  const [note, setNote] = useState("");
  const refused = (error: unknown) => setNote(errorText(error));
  const copy = (value: string) => copyText(value).then((isCopied) => setNote(isCopied ? text("copied") : ""));
  return (
    <article class="card">
      <h2>{text("otherDevices")}</h2>
      <p class="note">{text("tokenUse")}</p>
      <div class="actions">
        <button
          type="button"
          onClick={() =>
            void callPublic<{ token: string }>("get_api_access_token").then((got) => setToken(got.token), refused)}
        >
          {text("showToken")}
        </button>
        <button
          type="button"
          onClick={() => void call<{ url: string }>("get_playlist_url").then(({ url }) => setList(url), refused)}
        >
          {text("playlistForPlayers")}
        </button>
      </div>
      {[token, list].filter((value) => value !== "").map((value) => (
        <p key={value} class="secret">
          <code>{value}</code> <button type="button" onClick={() => void copy(value)}>{text("copy")}</button>
        </p>
      ))}
      {list !== "" && !isLoopback(location.hostname) ? <QrCode value={list} label={text("qrLabel", list)} /> : null}
      <p class="note" aria-live="polite">{note}</p>
    </article>
  );
}
