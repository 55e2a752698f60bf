/** In a real browser, a page that the user merely visits gets nothing from the engine and disturbs nothing. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import type { Browser, Page } from "playwright-core";
import { PAGE_HOST, type SeededFiles, seedFiles, type ServedEngine, serveEngine } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { launchChromium } from "./support.ts";

/** Longest that the browser may take over one attempt, ms. */
const PATIENCE_MS = 5000;

let seeder: SeededFiles;
let served: ServedEngine;
let browser: Browser;
let page: Page;
const pages = createServer((_request, response) => {
  response.setHeader("content-type", "text/html").end("<!doctype html><title>evil</title><body>");
});

before(async () => {
  seeder = await seedFiles([{ path: "clip.mp4", bytes: clip("mp4-front.mp4") }]);
  served = await serveEngine();
  pages.listen(0, PAGE_HOST);
  await new Promise((resolve) => pages.once("listening", resolve));
  browser = await launchChromium([`--host-resolver-rules=MAP evil.example ${PAGE_HOST}`]);
  page = await browser.newPage();
  await page.goto(`http://evil.example:${(pages.address() as AddressInfo).port}/`);
});
after(async () => {
  await browser?.close();
  pages.close();
  await served?.close();
  await seeder?.close();
});

const address = (name: string, more: Record<string, string> = {}) =>
  `${served.url}/engine/${name}?${new URLSearchParams({ magnet: seeder.magnet, ...more })}`;

/** A session as the user's own player has it. */
async function userSession(name: string): Promise<Record<string, string>> {
  const { response, error } = await (await fetch(address(name, { format: "json" }))).json();
  assertEquals(error, null);
  return response;
}

/** Everything that a page can do with an address and that shows whether it worked. */
function tryAll(url: string): Promise<Record<string, string>> {
  return page.evaluate(async ([target, patienceMs]) => {
    const outcome: Record<string, string> = {};
    const note = async (name: string, work: () => Promise<unknown>) => {
      try {
        outcome[name] = String(await work());
      } catch (error) {
        outcome[name] = `error ${(error as Error).name}`;
      }
    };
    const within = (work: (done: (what: string) => void) => void) =>
      new Promise<string>((resolve) => {
        setTimeout(() => resolve("nothing"), patienceMs);
        work(resolve);
      });
    const element = (tag: string, good: string, set: (made: HTMLElement) => void) =>
      within((done) => {
        const made = document.createElement(tag);
        made.addEventListener(good, () => done(good));
        made.addEventListener("error", () => done("error"));
        set(made);
        document.body.append(made);
      });
    // Chromium lets requests for one address wait for each other, for up to 20 s.
    let tries = 0;
    const own = () => `${target}${target.includes("?") ? "&" : "?"}try=${tries++}`;
    await Promise.all([
      note("fetch", async () => (await fetch(own())).status),
      note("fetch, no referrer", async () => (await fetch(own(), { referrerPolicy: "no-referrer" })).status),
      note("fetch without CORS", async () => {
        const answer = await fetch(own(), { mode: "no-cors" });
        return `${answer.type} ${answer.status}`;
      }),
      note("POST", async () => (await fetch(own(), { method: "POST", body: "d4:infoe" })).status),
      note("video", () => element("video", "loadedmetadata", (made) => (made as HTMLVideoElement).src = own())),
      note("image", () => element("img", "load", (made) => (made as HTMLImageElement).src = own())),
      note("script", () => element("script", "load", (made) => (made as HTMLScriptElement).src = own())),
      note("frame", async () => {
        await element("iframe", "load", (made) => (made as HTMLIFrameElement).src = own());
        return "loaded";
      }),
      note("sandboxed frame", () =>
        within((done) => {
          addEventListener("message", (event) => done(String(event.data)), { once: true });
          const made = document.createElement("iframe");
          made.setAttribute("sandbox", "allow-scripts");
          made.srcdoc = `<script>fetch(${JSON.stringify(own())}).then((a) => a.status, (e) => "error " + e.name)` +
            `.then((what) => parent.postMessage(what, "*"))</script>`;
          document.body.append(made);
        })),
      note("form", async () => {
        const frame = document.createElement("iframe");
        frame.name = `form${Math.random()}`;
        document.body.append(frame);
        const form = document.createElement("form");
        Object.assign(form, { action: own(), method: "post", target: frame.name, enctype: "text/plain" });
        document.body.append(form);
        form.submit();
        return await within((done) => frame.addEventListener("load", () => done("loaded")));
      }),
    ]);
    // It takes the page out of sight, where Chromium may leave frames unloaded.
    await note("window", () =>
      within((done) => {
        const opened = globalThis.open(own());
        // Until the answer is there it is a blank page of our own.
        const look = setInterval(() => {
          try {
            const text = opened?.document.body?.innerText ?? "";
            if (text === "") return;
            done(`read ${text}`);
          } catch (error) {
            done(`error ${(error as Error).name}`);
          }
          clearInterval(look);
          opened?.close();
        }, 20);
      }));
    document.body.replaceChildren();
    return outcome;
  }, [url, PATIENCE_MS] as const);
}

/** What each of these gets when it is refused; frames and windows load the refusal, which the page cannot read. */
const REFUSED: Readonly<Record<string, string>> = {
  "fetch": "error TypeError",
  "fetch, no referrer": "error TypeError",
  "fetch without CORS": "error TypeError",
  "POST": "error TypeError",
  "video": "error",
  "image": "error",
  "script": "error",
  "frame": "loaded",
  "sandboxed frame": "error TypeError",
  "form": "loaded",
  "window": "error SecurityError",
};

test("a foreign page cannot start a stream by any means", async () => {
  for (const name of ["getstream", "manifest.m3u8", "getfile"]) {
    assertEquals(await tryAll(address(name)), REFUSED, name);
  }
  assertEquals(served.engine.swarms.list().length, 0);
});

test("a foreign page neither reads nor stops what the user plays, even if it knows all addresses", async () => {
  const user = await userSession("manifest.m3u8");
  const segment = `${served.url}/engine/c/${seeder.metainfo.infohashHex}/0.ts`;
  for (const url of [user.playback_url!, segment, user.stat_url!, `${user.command_url}?method=stop`]) {
    assertEquals(await tryAll(url), REFUSED, url);
  }
  await tryAll(address("manifest.m3u8", { force_session_restart: "1" }));
  assertEquals((await (await fetch(user.stat_url!)).json()).response.playback_session_id, user.playback_session_id);
  for (const url of [user.playback_url!, segment]) {
    const answer = await fetch(url);
    await answer.body?.cancel();
    assertEquals(answer.status, 200);
  }
});

test("a foreign page cannot find out what was watched, neither by results nor by timing", async () => {
  const user = await userSession("getfile");
  await (await fetch(user.playback_url!)).arrayBuffer();
  const known = seeder.metainfo.infohashHex;
  const times = await page.evaluate(async ([base, infohashes]) => {
    const outcomes: { outcome: string; ms: number }[] = [];
    for (const infohash of infohashes) {
      for (
        const path of [
          `engine/getfile?infohash=${infohash}`,
          `engine/c/${infohash}/0.ts`,
          `server/api?method=get_media_files&infohash=${infohash}`,
          `server/api?method=analyze_content&query=${infohash}`,
        ]
      ) {
        const begunMs = performance.now();
        const outcome = await fetch(`${base}/${path}`, { mode: "no-cors" }).then((a) => a.type, (e) => e.name);
        outcomes.push({ outcome, ms: performance.now() - begunMs });
      }
    }
    return outcomes;
  }, [served.url, [known, "1".repeat(40)]] as const);
  const outcomes = (from: number) => times.slice(from, from + times.length / 2).map(({ outcome }) => outcome);
  assertEquals(outcomes(0), outcomes(times.length / 2));
  // Peers are asked for seconds, so that no request got so far.
  for (const { ms } of times) assertLess(ms, 1000);
});

test("the user opens a stream by typing its address, and a page of the engine's own origin plays it", async () => {
  const typed = await browser.newPage();
  // Chromium downloads documents that it cannot show.
  const download = typed.waitForEvent("download");
  await typed.goto(address("getstream")).catch(() => {});
  assert((await download).url().startsWith(`${served.url}/engine/r/`));
  await typed.goto(`${served.url}/webui/api/service?method=get_version`);
  const status = await typed.evaluate(async (url) => {
    const answer = await fetch(url);
    await answer.body?.cancel();
    return answer.status;
  }, address("getstream"));
  assertEquals(status, 200);
  await typed.close();
});
