/** @jsxImportSource hono/jsx/dom */
/** The page: rooms behind a hash, so that the back button works and nothing is loaded twice. */
import { render } from "hono/jsx/dom";
import { BroadcastPage } from "./broadcast-page.tsx";
import { EngineError } from "./engine.ts";
import { focusHeading, keepFocus } from "./focus.ts";
import { GuidePage } from "./guide-page.tsx";
import { loadLanguage } from "./language.ts";
import { LibraryPage } from "./library-page.tsx";
import { ListsPage } from "./lists-page.tsx";
import { isListName, placeOf, playHash } from "./naming.ts";
import { followAddress, pushAddress, scrollOfEntry } from "./navigation.ts";
import { PlayPage } from "./play-page.tsx";
import { keep, kept } from "./preferences.ts";
import { RecordingsPage } from "./recordings-page.tsx";
import { listen, type SentCommand, type SentStream } from "./remote.ts";
import { SentPage } from "./sent-page.tsx";
import { SettingsPage } from "./settings-page.tsx";
import { SignInForm } from "./sign-in-form.tsx";
import { moveFocusByArrows } from "./spatial.ts";
import { useEffect, useState } from "./state.ts";
import { chooseLanguage, LANGUAGES, text } from "./texts.ts";

/** Where it is kept that this page plays what others send. */
const RECEIVE_KEY = "millrace-receives";

function App({ language }: { readonly language: string }) {
  const [place, setPlace] = useState(placeOf(location.hash));
  /** How often the user went somewhere. */
  const [turn, setTurn] = useState(0);
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
  const openFile = (file: File) => {
    const hash = isListName(file.name) ? "#/library" : "#/play";
    pushAddress(hash);
    setPlace(placeOf(hash));
    setDropped(file);
    setTurn((before) => before + 1);
  };
  const speak = (event: Event) => {
    keep("language", (event.target as HTMLSelectElement).value);
    location.reload();
  };
  const receive = () => {
    localStorage.setItem(RECEIVE_KEY, receives ? "0" : "1");
    setReceives(!receives);
  };
  useEffect(() => {
    const unfollow = followAddress((isReplaced) => {
      setDropped(null);
      setPlace(placeOf(location.hash));
      if (isReplaced) return;
      setSent(null);
      setTurn((before) => before + 1);
    });
    const over = (event: DragEvent) => event.preventDefault();
    const drop = (event: DragEvent) => {
      event.preventDefault();
      const file = event.dataTransfer?.files[0];
      const link = event.dataTransfer?.getData("text");
      if (file !== undefined) openFile(file);
      else if (link) location.hash = playHash(link);
    };
    addEventListener("dragover", over);
    addEventListener("drop", drop);
    return () => {
      unfollow();
      removeEventListener("dragover", over);
      removeEventListener("drop", drop);
    };
  }, []);
  useEffect(() => {
    if (turn === 0) return;
    scrollTo(0, scrollOfEntry());
    focusHeading();
  }, [turn]);
  const skip = (event: Event) => {
    // The address says what is shown.
    event.preventDefault();
    document.getElementById("content")!.focus();
  };
  const failed = (error: unknown) => {
    if (error instanceof EngineError && error.code === 4) setNeedsToken(true);
  };
  return (
    <div class="page">
      <a class="skip" href="#content" onClick={skip}>{text("skip")}</a>
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
          ? <SignInForm done={() => setNeedsToken(false)} />
          : sent !== null
          ? <SentPage key={`${sent.path}/${sent.turn}`} stream={sent} command={command} close={() => setSent(null)} />
          : place.room === "library"
          ? <LibraryPage key={`${turn}`} dropped={dropped} failed={failed} />
          : place.room === "guide"
          ? <GuidePage failed={failed} />
          : place.room === "recordings"
          ? <RecordingsPage failed={failed} />
          : place.room === "lists"
          ? <ListsPage failed={failed} />
          : place.room === "broadcast"
          ? <BroadcastPage failed={failed} />
          : place.room === "settings"
          ? <SettingsPage failed={failed} />
          : (
            <PlayPage
              key={place.query ?? dropped?.name ?? ""}
              query={place.query}
              chosen={place.file}
              atS={place.atS}
              file={dropped}
              open={openFile}
              failed={failed}
            />
          )}
      </main>
      <footer>
        <button type="button" aria-pressed={String(receives)} onClick={receive}>{text("receive")}</button>
        <select aria-label={text("language")} onChange={speak}>
          {Object.entries(LANGUAGES).map(([tag, name]) => (
            <option key={tag} value={tag} lang={tag} selected={tag === language}>{name}</option>
          ))}
        </select>
      </footer>
    </div>
  );
}

const chosen = kept("language");
void loadLanguage(chooseLanguage(chosen === "" ? navigator.languages : [chosen])).then((language) => {
  document.documentElement.lang = language;
  moveFocusByArrows();
  keepFocus();
  render(<App language={language} />, document.getElementById("app")!);
});
