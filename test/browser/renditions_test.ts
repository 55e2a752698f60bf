/** hls.js in Chromium lists the sounds of a film, plays one, and changes to another without a new start. */
import { after, before, test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { readFile, writeFile } from "node:fs/promises";
import { discNothing, discPicture, supFile } from "../media/support/picture-subtitles.ts";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { run } from "../support/process.ts";
import { joinAsPlayer, openPlayerPage, type PlayerPage } from "./support.ts";

/** Coders of the pictures and the sounds, by film: the first goes as MPEG TS, with subtitles that hls.js does not know, the second as fragmented MP4. */
const FILMS: Readonly<Record<string, readonly string[]>> = {
  "h264-aac.mkv": ["-c:v", "libx264", "-preset", "ultrafast", "-g", "50", "-c:a", "aac"],
  "vp9-opus.mkv": ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-g", "50", "-c:a", "libopus"],
};

/** Size of the films. */
const SCREEN = [160, 90] as const;

let seeder: SeededFiles;
let served: ServedEngine;
let player: PlayerPage;

before(async () => {
  const directory = await temporaryDirectory();
  const files = [];
  for (const [name, coders] of Object.entries(FILMS)) {
    const graphs = ["testsrc2=s=160x90:r=25:d=12", "sine=440:r=48000:d=12", "sine=660:r=48000:d=12"];
    const inputs = graphs.flatMap((graph) => ["-f", "lavfi", "-i", graph]);
    const [from, to] = [discPicture({ number: 0, width: 60, height: 20, screen: SCREEN }), discNothing(1, SCREEN)];
    await writeFile(`${directory.path}/text.sup`, supFile([[1000, from], [3000, to], [6000, from], [9000, to]]));
    inputs.push("-i", `${directory.path}/text.sup`);
    const maps = [0, 1, 2, 3].flatMap((n) => ["-map", String(n)]);
    const tags = ["-metadata:s:a:0", "language=eng", "-metadata:s:a:1", "language=ger"];
    const all = [
      ...inputs,
      ...maps,
      "-pix_fmt",
      "yuv420p",
      ...coders,
      "-c:s",
      "copy",
      ...tags,
      `${directory.path}/${name}`,
    ];
    await run("ffmpeg", ["-nostdin", "-v", "error", ...all]);
    files.push({ path: name, bytes: new Uint8Array(await readFile(`${directory.path}/${name}`)) });
  }
  await directory.remove();
  seeder = await seedFiles(files, { name: "sounds" });
  player = await openPlayerPage(() => false);
  served = await serveEngine({ allowOrigins: [player.origin] });
  await joinAsPlayer(served.url, seeder.magnet);
});
after(async () => {
  await player?.close();
  await served?.close();
  await seeder?.close();
});

/** Plays `url` to its end, with the sound `second` from the middle on. */
function play(url: string, second: string) {
  return player.page.evaluate(async ([address, wanted]) => {
    // deno-lint-ignore no-explicit-any
    const Hls = (globalThis as any).Hls;
    const video = document.createElement("video");
    video.muted = true;
    document.querySelector("video")!.replaceWith(video);
    const errors: string[] = [];
    const fetched: string[] = [];
    const hls = new Hls({ enableWorker: false, maxBufferLength: 2, maxMaxBufferLength: 2 });
    // deno-lint-ignore no-explicit-any
    hls.on(Hls.Events.ERROR, (_: unknown, data: any) => {
      // It also notes what mends itself: pictures that came before any sound, a read that a seek ended.
      if (data.fatal) errors.push(data.details);
    });
    // deno-lint-ignore no-explicit-any
    hls.on(Hls.Events.FRAG_BUFFERED, (_: unknown, data: any) => fetched.push(data.frag.url.split("/").pop()));
    const event = (name: string) =>
      new Promise<void>((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`no ${name} at ${video.currentTime}: ${errors}`)), 40_000);
        video.addEventListener(name, () => {
          clearTimeout(timer);
          resolve();
        }, { once: true });
      });
    const seeked = () => event("seeked");
    const loaded = event("loadeddata");
    hls.loadSource(address);
    hls.attachMedia(video);
    await loaded;
    video.playbackRate = 4;
    // deno-lint-ignore no-explicit-any
    const names = hls.audioTracks.map(({ name, lang }: any) => [name, lang]);
    const before = fetched.length;
    const switched = new Promise<void>((resolve) => hls.once(Hls.Events.AUDIO_TRACK_SWITCHED, () => resolve()));
    // deno-lint-ignore no-explicit-any
    hls.audioTrack = hls.audioTracks.findIndex(({ name }: any) => name === wanted);
    await switched;
    const sought = seeked();
    video.currentTime = 7;
    await sought;
    const ended = event("ended");
    await video.play();
    await ended;
    const outcome = {
      names,
      errors,
      first: fetched.slice(0, before),
      rest: fetched.slice(before),
      time: video.currentTime,
      // deno-lint-ignore no-explicit-any -- Chromium's own
      soundBytes: (video as any).webkitAudioDecodedByteCount as number,
    };
    hls.destroy();
    return outcome;
  }, [url, second] as const);
}

for (const [n, name] of Object.keys(FILMS).entries()) {
  test(`hls.js lists both sounds of ${name}, and plays the other one after a change`, async () => {
    const query = new URLSearchParams({ magnet: seeder.magnet, _idx: String(n), pid: "sounds", renditions: "1" });
    const outcome = await play(`${served.url}/engine/manifest.m3u8?${query}`, "German");
    assertEquals([outcome.errors, outcome.names], [[], [["English", "en"], ["German", "de"]]]);
    assert(outcome.first.some((file) => file!.startsWith("a1-")), outcome.first.join());
    assert(outcome.rest.some((file) => file!.startsWith("a2-")), outcome.rest.join());
    assert(!outcome.first.some((file) => file!.startsWith("a2-")), outcome.first.join());
    assert(outcome.soundBytes > 5000, `${outcome.soundBytes} bytes of sound`);
    assert(outcome.time > 11.5, `${outcome.time} s`);
  });
}
