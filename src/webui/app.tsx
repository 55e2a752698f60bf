/** @jsxImportSource hono/jsx/dom */
/** The page: rooms behind a hash, so that the back button works and nothing is loaded twice. */
import { render, useEffect, useState } from "hono/jsx/dom";
import { BroadcastPage } from "./broadcast-page.tsx";
import { call, EngineError, useToken } from "./engine.ts";
import { LibraryPage } from "./library-page.tsx";
import { ListsPage } from "./lists-page.tsx";
import { isListName, nameOf, placeOf, playHash } from "./naming.ts";
import { PlayPage } from "./play-page.tsx";
import { listen, type SentCommand, type SentStream } from "./remote.ts";
import { SentPage } from "./sent-page.tsx";
import { SettingsPage } from "./settings-page.tsx";
import { moveFocusByArrows } from "./spatial.ts";
import { chooseLanguage, setLanguage, text } from "./texts.ts";

/** Where it is kept that this page plays what others send. */
const RECEIVE_KEY = "millrace-receives";

function App() {
  const [place, setPlace] = useState(placeOf(location.hash));
  const [dropped, setDropped] = useState<File | null>(null);
  const [needsToken, setNeedsToken] = useState(false);
  const [receives, setReceives] = useState(localStorage.getItem(RECEIVE_KEY) === "1");
  const [sent, setSent] = useState<SentStream | null>(null);
  const [command, setCommand] = useState<SentCommand | null>(null);
  useEffect(() => {
    if (!receives) return;
    const ending = new AbortController();
    void listen({
      open: (stream) => {
        setCommand(null);
        setSent(stream);
      },
      command: (given) => given.kind === "stop" ? setSent(null) : setCommand(given),
    }, ending.signal);
    return () => ending.abort();
  }, [receives]);
  const receive = () => {
    localStorage.setItem(RECEIVE_KEY, receives ? "0" : "1");
    setReceives(!receives);
  };
  useEffect(() => {
    const moved = () => {
      setDropped(null);
      setSent(null);
      setPlace(placeOf(location.hash));
    };
    const over = (event: DragEvent) => event.preventDefault();
    const drop = (event: DragEvent) => {
      event.preventDefault();
      const file = event.dataTransfer?.files[0];
      const link = event.dataTransfer?.getData("text");
      if (file !== undefined) {
        setPlace({ room: isListName(file.name) ? "library" : "play", query: null });
        setDropped(file);
      } else if (link) location.hash = playHash(link);
    };
    addEventListener("hashchange", moved);
    addEventListener("dragover", over);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("hashchange", moved);
      removeEventListener("dragover", over);
      removeEventListener("drop", drop);
    };
  }, []);
  const failed = (error: unknown) => {
    if (error instanceof EngineError && error.code === 4) setNeedsToken(true);
  };
  const named = place.query === null ? null : nameOf(place.query);
  return (
    <div class="page">
      <a class="skip" href="#content">{text("skip")}</a>
      <header>
        <a class="mark" href="#/play" aria-label="millrace">
          <svg viewBox="0 0 32 32" aria-hidden="true">
            <path d="M2 12c5-5 9 5 14 0s9 5 14 0" />
            <path d="M2 21c5-5 9 5 14 0s9 5 14 0" />
          </svg>
          <span>millrace</span>
        </a>
        <nav>
          <a href="#/play" aria-current={place.room === "play" ? "page" : undefined}>{text("play")}</a>
          <a href="#/library" aria-current={place.room === "library" ? "page" : undefined}>{text("library")}</a>
          <a href="#/lists" aria-current={place.room === "lists" ? "page" : undefined}>{text("lists")}</a>
          <a href="#/broadcast" aria-current={place.room === "broadcast" ? "page" : undefined}>{text("broadcast")}</a>
          <a href="#/settings" aria-current={place.room === "settings" ? "page" : undefined}>{text("settings")}</a>
        </nav>
      </header>
      <main id="content" tabIndex={-1}>
        {needsToken
          ? <TokenForm done={() => setNeedsToken(false)} />
          : sent !== null
          ? <SentPage key={`${sent.path}/${sent.turn}`} stream={sent} command={command} close={() => setSent(null)} />
          : place.room === "library"
          ? <LibraryPage dropped={dropped} failed={failed} />
          : place.room === "lists"
          ? <ListsPage failed={failed} />
          : place.room === "broadcast"
          ? <BroadcastPage failed={failed} />
          : place.room === "settings"
          ? <SettingsPage failed={failed} />
          : <PlayPage key={place.query ?? dropped?.name ?? ""} wanted={named} file={dropped} failed={failed} />}
      </main>
      <footer>
        <button type="button" aria-pressed={String(receives)} onClick={receive}>{text("receive")}</button>
      </footer>
    </div>
  );
}

/** Asks for the token: the page is on another machine than the engine. */
function TokenForm({ done }: { readonly done: () => void }) {
  const [wrong, setWrong] = useState("");
  const submit = async (event: Event) => {
    event.preventDefault();
    useToken(String(new FormData(event.target as HTMLFormElement).get("token")));
    try {
      await call("check_auth");
      done();
    } catch (error) {
      setWrong(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <form class="token" onSubmit={submit}>
      <h1>{text("tokenTitle")}</h1>
      <p>{text("tokenHint")}</p>
      <label>
        {text("tokenField")}
        <input name="token" type="password" autocomplete="off" required pattern="[0-9a-fA-F]{64}" />
      </label>
      <button type="submit">{text("enter")}</button>
      <p role="alert">{wrong}</p>
    </form>
  );
}

const language = chooseLanguage(navigator.languages);
setLanguage(language);
document.documentElement.lang = language;
moveFocusByArrows();
render(<App />, document.getElementById("app")!);
