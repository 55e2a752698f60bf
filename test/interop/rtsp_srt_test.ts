/**
 * Sources by RTSP and SRT, from programs that we didn't write: GStreamer's RTSP server, ffmpeg, and the SRT project's own
 * srt-live-transmit. Needs ffmpeg, GStreamer's RTSP server with its binding for Python, and srt-tools.
 */
import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { openSource } from "../../src/inputs/open-source.ts";
import { dataOf, hear, losses, OPTIONS, sourcePorts } from "../inputs/support.ts";
import { temporaryDirectory } from "../support/engine.ts";
import { type Program, run, start } from "../support/process.ts";
import { freePort } from "../support/tracker.ts";

const SERVER = fileURLToPath(new URL("support/rtsp_server.py", import.meta.url));
/** A source is heard for some seconds. */
const ENOUGH_BYTES = 150_000;
/** Beside other tests programs begin late, ms. */
const WAIT_MS = 90_000;

let directory: { path: string; remove(): Promise<void> };
/** A minute of pictures with reordered ones among them, and sound. */
let film: string;
before(async () => {
  directory = await temporaryDirectory();
  film = `${directory.path}/film.ts`;
  const { code, stderr } = await run("ffmpeg", [
    ...["-v", "error", "-f", "lavfi", "-i", "testsrc2=s=320x180:r=25:d=60", "-f", "lavfi", "-i", "sine=r=48000:d=60"],
    ...["-c:v", "libx264", "-preset", "veryfast", "-g", "25", "-bf", "2", "-pix_fmt", "yuv420p", "-b:v", "400k"],
    ...["-c:a", "aac", "-f", "mpegts", film],
  ]);
  assertEquals([code, stderr], [0, ""]);
  // As a sender by RTSP needs it: with the parameters of the sound apart.
  const copied = await run("ffmpeg", ["-v", "error", "-i", film, "-c", "copy", `${directory.path}/film.mp4`]);
  assertEquals([copied.code, copied.stderr], [0, ""]);
});
after(async () => await directory?.remove());

/** What `source` delivers holds pictures and sound whose times go on, and ffmpeg decodes it. */
async function assertHeard(source: string): Promise<void> {
  const ports = await sourcePorts();
  const { input } = await openSource(ports, source, OPTIONS);
  const heard = await hear(input, (_, bytes) => bytes > ENOUGH_BYTES, WAIT_MS);
  // A server that listens may not do so yet: the source tries again.
  const said = losses(heard).join("; ");
  const bytes = dataOf(heard);
  assert(bytes.length > ENOUGH_BYTES, `${bytes.length} bytes: ${said}`);
  const file = `${directory.path}/heard.ts`;
  await writeFile(file, bytes);
  const show = ["-v", "error", "-show_entries", "packet=codec_type,dts_time", "-of", "csv=p=0", file];
  const packets = (await run("ffprobe", show)).text.split("\n").map((line) => line.split(","));
  for (const kind of ["video", "audio"]) {
    const times = packets.filter(([type]) => type === kind).map(([, time]) => Number(time));
    assert(times.length > 50, `${times.length} packets of ${kind}`);
    const steps = times.slice(1).map((time, i) => time - times[i]!);
    assert(steps.every((step) => step > 0 && step < 1), `${kind}: ${Math.min(...steps)} to ${Math.max(...steps)} s`);
  }
  // It may have been joined in the middle of a group of pictures, which a decoder skips.
  const { code, stderr } = await run("ffmpeg", ["-v", "fatal", "-nostdin", "-i", file, "-f", "null", "-"]);
  assertEquals([code, stderr], [0, ""]);
}

/** The film in real time, to `output`. */
const send = (input: string, ...output: string[]) =>
  start("ffmpeg", ["-v", "error", "-nostdin", "-re", "-i", input, "-c", "copy", ...output]);

async function withPrograms(body: (add: (program: Program) => Program) => Promise<void>): Promise<void> {
  const programs: Program[] = [];
  try {
    await body((program) => {
      programs.push(program);
      return program;
    });
  } finally {
    for (const program of programs) await program.stop();
  }
}

for (
  const [what, protocol, ...login] of [["TCP", "tcp"], ["UDP", "udp"], ["TCP, with a password", "tcp", "me", "se/cret"]]
) {
  test(`a source hears GStreamer's RTSP server over ${what}`, async () => {
    await withPrograms(async (add) => {
      const server = add(start("/usr/bin/python3", [SERVER, film, protocol!, ...login]));
      const [, port] = await server.line(/^port (\d+)/);
      const user = login.length > 0 ? `${login.map(encodeURIComponent).join(":")}@` : "";
      await assertHeard(`rtsp://${user}127.0.0.1:${port}/live`);
    });
  });
}

test("a source says what is wrong when an RTSP server refuses the password", async () => {
  await withPrograms(async (add) => {
    const server = add(start("/usr/bin/python3", [SERVER, film, "tcp", "me", "secret"]));
    const [, port] = await server.line(/^port (\d+)/);
    const { input } = await openSource(await sourcePorts(), `rtsp://me:wrong@127.0.0.1:${port}/live`, OPTIONS);
    const [said] = losses(await hear(input, (heard) => losses(heard).length > 0, WAIT_MS));
    assertMatch(said!, /401 Unauthorized/);
    assert(!said!.includes("wrong"), said);
  });
});

test("a source waits for an RTSP sender, and for the next one after that", async () => {
  await withPrograms(async (add) => {
    const port = await freePort();
    const address = `rtsp://127.0.0.1:${port}/live`;
    const { input, isAwaited, description } = await openSource(await sourcePorts(), `${address}?listen=1`, OPTIONS);
    assertEquals([isAwaited, description], [true, address]);
    let sender: Program | null = null;
    let isOver = false;
    // A sender that comes before the source listens has to come again, as all of them do.
    const sending = (async () => {
      while (!isOver) {
        sender = add(send(`${directory.path}/film.mp4`, "-f", "rtsp", "-rtsp_transport", "tcp", address));
        await sender.exited;
      }
    })();
    let isLeft = false;
    const heard = await hear(input, (soFar, bytes) => {
      if (bytes > ENOUGH_BYTES && !isLeft) {
        isLeft = true;
        void sender!.stop();
      }
      return isLeft && bytes > ENOUGH_BYTES + ENOUGH_BYTES / 4 && losses(soFar).length > 0;
    }, WAIT_MS);
    isOver = true;
    await sender!.stop();
    await sending;
    // What came after the last loss is the next sender's.
    assert("data" in heard.at(-1)! && isLeft, JSON.stringify(losses(heard)));
  });
});

const PASSPHRASE = "0123456789abcdef";

test("a source hears srt-live-transmit, whether it calls or listens, with and without a passphrase", async () => {
  for (const [mode, secret] of [["caller", ""], ["caller", PASSPHRASE], ["listener", ""], ["listener", PASSPHRASE]]) {
    await withPrograms(async (add) => {
      const [udp, srt] = [await freePort(), await freePort()];
      const key = secret === "" ? "" : `&passphrase=${encodeURIComponent(secret!)}&pbkeylen=16`;
      const output = `srt://127.0.0.1:${srt}?mode=${mode}${key}`;
      add(start("srt-live-transmit", ["-q", "-a:yes", `udp://127.0.0.1:${udp}`, output]));
      add(send(film, "-f", "mpegts", `udp://127.0.0.1:${udp}?pkt_size=1316`));
      const ours = mode === "caller" ? "listener" : "caller";
      await assertHeard(`srt://127.0.0.1:${srt}?mode=${ours}${key}`);
    });
  }
});

test("a source says what is wrong when an SRT listener refuses the passphrase", async () => {
  await withPrograms(async (add) => {
    const [udp, srt] = [await freePort(), await freePort()];
    const url = (secret: string) => `srt://127.0.0.1:${srt}?mode=MODE&passphrase=${secret}`;
    add(
      start("srt-live-transmit", ["-a:yes", `udp://127.0.0.1:${udp}`, url("0123456789").replace("MODE", "listener")]),
    );
    const source = url("9876543210").replace("MODE", "caller");
    const { input } = await openSource(await sourcePorts(), source, OPTIONS);
    const [said] = losses(await hear(input, (heard) => losses(heard).length > 0, WAIT_MS));
    assertMatch(said!, /the passphrase or streamid is wrong/);
    assert(!said!.includes("9876543210"), said);
  });
});
