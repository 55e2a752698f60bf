/** The player on a real engine with real peers: what it shows, and what it survives. */
import { after, before, test } from "node:test";
import { assert, assertEquals, assertGreater, assertMatch } from "@std/assert";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { loadPorts } from "../../platform/detect.ts";
import { createEngine, type Engine, type EngineOptions } from "../../src/engine.ts";
import type { HttpServer } from "../../src/ports.ts";
import { PAGE_HOST, type SeededFiles, seedFiles, temporaryDirectory } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { onAir } from "../support/live.ts";
import { until } from "../support/until.ts";
import { launchChromium } from "./support.ts";
import { barriers, frames, makeFilm, misfits, openMore, shot, soundBytes } from "./webui-support.ts";

/** Bytes per second of the seeder: somewhat faster than the film plays, so that it is never all here. */
const SEED_RATE = 160_000;

/** A phone, a desk, a television. */
const SCREENS = [[390, 844], [1280, 1040], [1920, 1080]] as const;

let seeder: SeededFiles;
let browser: Browser;

before(async () => {
  const film = await makeFilm(120);
  seeder = await seedFiles([{ path: "Harbour at dusk.mp4", bytes: film }], {
    pieceLengthBytes: 65_536,
    engine: { uploadLimitBytesPerSecond: SEED_RATE },
  });
  browser = await launchChromium();
});
after(async () => {
  await browser?.close();
  await seeder?.close();
});

/** An engine on a port that it gets back after a restart. */
class Restartable {
  readonly #options: EngineOptions;
  #engine: Engine | null = null;
  #server: HttpServer | null = null;
  #port = 0;

  constructor(options: EngineOptions) {
    this.#options = { peerHost: "127.0.0.1", peerPort: 0, dht: false, lsd: false, cache: "ram", ...options };
  }

  get url(): string {
    return `http://${PAGE_HOST}:${this.#port}`;
  }

  async start(): Promise<void> {
    const ports = await loadPorts({ log: { level: "error" } });
    const engine = this.#engine = await createEngine(ports, this.#options);
    this.#server = await ports.http.serve(
      { host: PAGE_HOST, port: this.#port },
      (request, info) => engine.fetch(request, info),
    );
    this.#port = this.#server.address.port;
  }

  async stop(): Promise<void> {
    await Promise.all([this.#engine?.close(), this.#server?.close(0)]);
  }
}

async function withPage(
  options: EngineOptions,
  body: (page: Page, engine: Restartable, context: BrowserContext) => Promise<void>,
): Promise<void> {
  const engine = new Restartable(options);
  await engine.start();
  const context = await browser.newContext({ viewport: { width: 1280, height: 1040 } });
  const page = await context.newPage();
  try {
    await body(page, engine, context);
  } finally {
    await context.close();
    await engine.stop();
  }
}

async function play(page: Page, url: string, magnet = seeder.magnet): Promise<void> {
  await page.goto(`${url}/#/play?q=${encodeURIComponent(magnet)}`);
  // One file starts by itself.
  await page.waitForSelector(".files li, video");
  await page.evaluate(() => addEventListener("play", (event) => (event.target as HTMLVideoElement).muted = true, true));
  if (await page.locator(".files").count() > 0) await page.click(".files li:first-child button");
}

const video = (page: Page) =>
  page.evaluate(() => {
    const { currentTime, buffered } = document.querySelector("video")!;
    return { at: currentTime, end: buffered.length === 0 ? 0 : buffered.end(buffered.length - 1) };
  });
const status = async (page: Page) => await page.locator(".status").textContent() ?? "";

test("the player shows which pieces are downloaded and on their way, who sends them, and what the system may control", async () => {
  await withPage({}, async (page, { url }) => {
    await play(page, url);
    await page.waitForSelector(".filling");
    await until("pictures are shown", async () => await frames(page) > 10);
    await page.waitForSelector(".channel .water");
    await until(
      "pieces are on their way",
      () => page.evaluate(() => document.querySelector(".channel .coming")!.getAttribute("d") !== ""),
    );
    assertMatch(await page.locator(".channel svg").getAttribute("aria-label") ?? "", /^Pieces: \d+ % is here, [1-9]/);
    assertEquals(await page.locator(".buoy").count(), 1);
    await openMore(page);
    await page.click("text=Statistics");
    await page.click(".peers summary");
    assertMatch(await page.locator(".peers th").first().textContent() ?? "", /^127\.0\.0\.1:\d+$/);
    await until("its speed is shown", async () => /↓ .*\/s/.test(await page.locator(".peers tr").textContent() ?? ""));
    assertEquals(await page.evaluate(() => navigator.mediaSession.metadata?.title), "Harbour at dusk.mp4");
    await openMore(page);
    await page.click("text=On the phone or TV");
    // Another device cannot use an address that means every machine's own.
    if (PAGE_HOST !== "127.0.0.1") assertEquals(await page.locator(".share svg").count(), 1);
    else assertMatch(await page.locator(".share .note").last().textContent() ?? "", /--bind-all/);
    assertEquals(await barriers(page), []);
    await until("some seconds are here", async () => (await video(page)).at > 6);
    await page.click(".statistics >> text=Close");
    await page.mouse.move(400, 400);
    await shot(page, "player-desktop-light");
    for (
      const [name, width, height, colorScheme] of [
        ["player-desktop-dark", 1280, 1040, "dark"],
        ["player-phone-dark", 390, 844, "dark"],
        ["player-phone-light", 390, 844, "light"],
        ["player-tv-dark", 1920, 1080, "dark"],
      ] as const
    ) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme });
      assertEquals(await misfits(page), { scroll: 0, small: [] }, name);
      assertEquals(await barriers(page), [], name);
      await shot(page, name);
    }
  });
});

test("a film resumes on another device where it was left off", async () => {
  await withPage({ accessToken: "a".repeat(64) }, async (page, { url }) => {
    await play(page, url);
    await until("pictures are shown", async () => await frames(page) > 10);
    await page.evaluate(() => document.querySelector("video")!.currentTime = 45);
    await until("it plays there", async () => (await video(page)).at > 45.5);
    await page.click("text=Back");
    const query = `method=get_position&token=${"a".repeat(64)}&infohash=${seeder.metainfo.infohashHex}`;
    await until(
      "the engine knows",
      async () => (await (await fetch(`${url}/server/api?${query}`)).json()).result.position >= 45,
    );
    const other = await browser.newContext();
    try {
      const phone = await other.newPage();
      await play(phone, url);
      await until("it goes on there", async () => (await video(phone)).at >= 45);
    } finally {
      await other.close();
    }
  });
});

for (const keeps of ["with its state", "without any state"]) {
  test(`the picture moves again by itself when the engine was started again ${keeps}`, async () => {
    const state = await temporaryDirectory();
    try {
      await withPage(keeps === "with its state" ? { stateDir: state.path } : {}, async (page, engine) => {
        await play(page, engine.url);
        await until("some seconds are played", async () => (await video(page)).at > 3);
        await engine.stop();
        await until("the page says so", async () => /engine does not respond/.test(await status(page)));
        await shot(page, "engine-gone");
        const before = await video(page);
        await engine.start();
        await until("more has come", async () => (await video(page)).end > before.end + 4, 30_000);
        await until("it plays on", async () => (await video(page)).at > before.at + 1);
        await until("the page has nothing to complain of", async () => await status(page) === "");
      });
    } finally {
      await state.remove();
    }
  });
}

test("the picture moves again when the network of the viewer was away", async () => {
  await withPage({}, async (page, engine, context) => {
    await play(page, engine.url);
    await until("some seconds are played", async () => (await video(page)).at > 3);
    await context.setOffline(true);
    await until("the page says so", async () => /engine does not respond/.test(await status(page)));
    const before = await video(page);
    await context.setOffline(false);
    await until("more has come", async () => (await video(page)).end > before.end + 2, 30_000);
    await until("the page has nothing to complain of", async () => await status(page) === "");
  });
});

test("subtitles beside the film are off, on and off again, the sound changes its language, and so does the file", async () => {
  const srt = (text: string) => new TextEncoder().encode(`1\n00:00:00,100 --> 00:00:59,000\n${text}\n`);
  const film = await makeFilm(60, { languages: ["eng", "spa"], size: "320x180" });
  const voyage = await seedFiles([
    { path: "Voyage 1.mp4", bytes: film },
    { path: "Voyage 1.en.srt", bytes: srt("Ahoy") },
    { path: "Voyage 1.es.srt", bytes: srt("Hola") },
    { path: "Voyage 2.mp4", bytes: film.subarray(0) },
  ], { name: "Voyage" });
  const shown = (page: Page) =>
    page.evaluate(() =>
      [...document.querySelector("video")!.textTracks].filter(({ mode }) => mode === "showing")
        .flatMap(({ activeCues }) => [...activeCues ?? []].map((cue) => (cue as VTTCue).text))
    );
  try {
    await withPage({}, async (page, { url }) => {
      await play(page, url, voyage.magnet);
      await until("pictures are shown", async () => await frames(page) > 10);
      const choose = async (menu: string, label: string) => {
        await page.locator(".menu > button", { hasText: menu }).click();
        await page.locator(".menu li button", { hasText: label }).click();
      };
      await page.waitForSelector(".menu:has-text('Subtitles')");
      assertEquals(await shown(page), []);
      await choose("Subtitles", "Spanish");
      await until("they are shown", async () => (await shown(page))[0] === "Hola");
      for (const [width, height] of SCREENS) {
        await page.setViewportSize({ width, height });
        await page.locator(".menu > button", { hasText: "Subtitles" }).click();
        assertEquals([await misfits(page), await barriers(page)], [{ scroll: 0, small: [] }, []], `${width} px`);
        await shot(page, `player-subtitles-${width}`);
        await page.keyboard.press("Escape");
      }
      await choose("Subtitles", "Off");
      await until("they are off", async () => (await shown(page)).length === 0);
      const sound = page.locator(".menu:has-text('Sound') > button");
      assertEquals(await sound.textContent(), "Sound: English");
      const before = await video(page);
      await choose("Sound", "Spanish");
      await until(
        "Spanish is heard",
        async () => await sound.count() > 0 && await sound.textContent() === "Sound: Spanish",
      );
      await until("it goes on where it was", async () => (await video(page)).at > before.at + 0.5);
      await choose("File", "Voyage 2.mp4");
      await page.waitForFunction(() => /Voyage 2/.test(document.querySelector("h1")!.textContent!));
      await until("the other file plays", async () => await frames(page) > 10);
    });
  } finally {
    await voyage.close();
  }
});

test("a viewer goes back in time in a broadcast, and returns to its live edge", async () => {
  const air = await onAir();
  try {
    await withPage({ startTimeoutMs: 20_000 }, async (page, { url }) => {
      await page.goto(`${url}/#/play?q=${encodeURIComponent(air.magnet)}`);
      await until("pictures are shown", async () => await frames(page) > 10, 60_000);
      await until("there is something to go back to", () =>
        page.evaluate(() => {
          const range = document.querySelector<HTMLInputElement>(".live input");
          return range !== null && Number(range.max) - Number(range.min) > 12;
        }), 60_000);
      for (const [width, height] of SCREENS) {
        await page.setViewportSize({ width, height });
        assertEquals([await misfits(page), await barriers(page)], [{ scroll: 0, small: [] }, []], `${width} px`);
        await shot(page, `player-live-${width}`);
      }
      const back = await page.evaluate(() => Number(document.querySelector<HTMLInputElement>(".live input")!.min) + 1);
      await page.fill(".live input", String(Math.ceil(back)));
      await until("it is there", async () => Math.abs((await video(page)).at - back) < 4);
      await until(
        "it says how far",
        async () => /\d+ s behind live/.test(await page.locator(".live").textContent() ?? ""),
      );
      await page.click("text=Go live");
      await until("it is at the edge", async () => /^live/.test(await page.locator(".live .note").textContent() ?? ""));
    });
  } finally {
    await air.close();
  }
});

test("a dead stream ends in words that say why", async () => {
  await withPage({ startTimeoutMs: 1500 }, async (page, { url }) => {
    const dead = `magnet:?xt=urn:btih:${"0".repeat(39)}1&dn=dead&x.pe=127.0.0.1:1`;
    await page.goto(`${url}/#/play?q=${encodeURIComponent(dead)}`);
    await page.waitForSelector(".found [role=alert]");
    const words = await page.locator(".found [role=alert]").textContent() ?? "";
    assertMatch(words, /^It did not start\. .*no peer has sent the description/);
    assert(!words.includes("_"), words);
    await shot(page, "dead-stream");
  });
});

test("the page names codecs that the browser cannot decode, and what helps", async () => {
  const hevc = await seedFiles([{ path: "hevc.mp4", bytes: clip("mp4-hevc.mp4") }]);
  try {
    await withPage({}, async (page, { url }) => {
      await play(page, url, hevc.magnet);
      await until("it is said", async () => /HEVC/.test(await status(page)));
      assertMatch(await status(page), /VLC/);
      assertGreater(await page.locator("a[href^='vlc://']").count(), 0);
      await shot(page, "cannot-decode");
    });
  } finally {
    await hevc.close();
  }
});

test("a film whose sound this browser lacks has it as AAC unasked, and says what is missing where that is not wanted", async () => {
  const film = await seedFiles([{ path: "ac3.mp4", bytes: clip("mp4-ac3.mp4") }]);
  try {
    await withPage({}, async (page, { url }) => {
      await play(page, url, film.magnet);
      await until("pictures are shown", async () => await frames(page) > 10);
      await until("there is sound", async () => await soundBytes(page) > 0);
      assertEquals(await status(page), "");
      await openMore(page);
      await page.click("text=Convert the sound to AAC");
      await until("it is said", async () => /no sound.*AC-3/.test(await status(page)));
    });
  } finally {
    await film.close();
  }
});
