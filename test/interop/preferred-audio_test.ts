/** `preferred_audio_language` on transport streams: the track that players take first is the one in that language. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { readFile } from "node:fs/promises";
import { seedFiles, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { run } from "../support/process.ts";

/** Pitch of each language's sound, Hz. */
const PITCH = { eng: 300, deu: 600, fra: 1200 } as const;

/** A transport stream with sound in three languages, each with another pitch. */
async function makeClip(path: string): Promise<Uint8Array> {
  const args = ["-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc=s=160x120:r=25:d=6"];
  for (const pitch of Object.values(PITCH)) args.push("-f", "lavfi", "-i", `sine=f=${pitch}:d=6:r=48000`);
  args.push("-map", "0", "-map", "1", "-map", "2", "-map", "3", "-c:v", "libx264", "-preset", "ultrafast", "-g", "25");
  args.push("-pix_fmt", "yuv420p", "-c:a", "mp2", "-b:a", "128k");
  for (const [i, language] of Object.keys(PITCH).entries()) args.push(`-metadata:s:a:${i}`, `language=${language}`);
  const { code, stderr } = await run("ffmpeg", [...args, path]);
  assertEquals([code, stderr], [0, ""]);
  return new Uint8Array(await readFile(path));
}

/** Pitch of a stream's sound by the crossings of zero in its middle second, Hz. */
async function pitchOf(input: string, stream: string): Promise<number> {
  const directory = await temporaryDirectory();
  const raw = `${directory.path}/sound`;
  const args = ["-nostdin", "-v", "error", "-i", input, "-map", stream, "-ac", "1", "-ar", "48000", "-f", "s16le", raw];
  assertEquals((await run("ffmpeg", args)).stderr, "");
  const bytes = await readFile(raw);
  await directory.remove();
  let crossings = 0;
  for (let i = 2 * 48_000; i < 3 * 48_000; i++) {
    if (bytes.readInt16LE(2 * i) < 0 && bytes.readInt16LE(2 * i + 2) >= 0) crossings++;
  }
  return crossings;
}

test("preferred_audio_language puts its track first in /engine/r and /engine/c, also as AAC", async () => {
  const directory = await temporaryDirectory();
  const bytes = await makeClip(`${directory.path}/three.ts`);
  const seeder = await seedFiles([{ path: "three.ts", bytes }], { name: "three" });
  const served = await serveEngine();
  try {
    const cases = [["", 300], ["de", 600], ["jpn,fre", 1200], ["eng", 300]] as const;
    for (const output of ["getstream", "manifest.m3u8"]) {
      for (const [language, pitch] of cases) {
        for (const more of [{}, { transcode_audio: "1", transcode_mp3: "1" }]) {
          const query = new URLSearchParams({ magnet: seeder.magnet, pid: `${output}${language}`, ...more });
          if (language !== "") query.set("preferred_audio_language", language);
          const url = `${served.url}/engine/${output}?${query}`;
          const heard = await pitchOf(url, "0:a:0");
          assert(Math.abs(heard - pitch) <= 3, `${output} ${language} ${JSON.stringify(more)}: ${heard} Hz`);
          const { text } = await run("ffprobe", [
            "-v",
            "error",
            "-show_entries",
            "stream=codec_name",
            "-of",
            "csv",
            url,
          ]);
          assertMatch(text, "transcode_audio" in more ? /aac/ : /mp2/);
        }
      }
    }
    const url = `${served.url}/engine/getstream?${new URLSearchParams({ magnet: seeder.magnet })}`;
    const mpv = ["--no-config", "--vo=null", "--ao=null", "--untimed", "--ao-null-untimed=yes", "--length=1"];
    const { text } = await run("mpv", [...mpv, `${url}&preferred_audio_language=fra`]);
    assertMatch(text, /\(\+\) Audio --aid=1 --alang=fra/, text);
  } finally {
    await served.close();
    await seeder.close();
    await directory.remove();
  }
});
