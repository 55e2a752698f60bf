/** Warns of streams that viewers cannot play well: scrambled packets, several programs. Passes everything on. */
import { isScrambled, PACKET_BYTES, payloadOf, pidOf, startsUnit } from "../bytes/ts/packet.ts";
import { readPat, SectionAssembler } from "../bytes/ts/psi.ts";
import type { LiveInputEvent } from "../live/broadcast/input.ts";
import type { Logger } from "../ports.ts";

/** Packets that are examined after a start or a loss: two seconds at 10 Mb/s. */
const LOOKED_AT = 13_000;
/** Part of them that is scrambled in a stream that nobody can watch. */
const SCRAMBLED_PART = 0.1;

/** `events`, whose data are whole packets, with a warning for each trouble once. */
export async function* inspected(
  events: AsyncIterable<LiveInputEvent>,
  log: Logger,
): AsyncGenerator<LiveInputEvent, void> {
  let look = new Look();
  const told = new Set<string>();
  for await (const event of events) {
    if (event.kind === "lost") look = new Look();
    else if (!look.isDone) {
      for (const warning of look.push(event.bytes)) {
        if (!told.has(warning)) log.log("warn", warning);
        told.add(warning);
      }
    }
    yield event;
  }
}

class Look {
  readonly #tables = new SectionAssembler();
  #packets = 0;
  #scrambled = 0;
  #programs = 0;

  get isDone(): boolean {
    return this.#packets >= LOOKED_AT;
  }

  push(packets: Uint8Array): string[] {
    const warnings: string[] = [];
    for (let at = 0; at < packets.length; at += PACKET_BYTES) {
      this.#packets++;
      if (isScrambled(packets, at)) this.#scrambled++;
      if (pidOf(packets, at) !== 0) continue;
      for (const section of this.#tables.push(payloadOf(packets, at), startsUnit(packets, at))) {
        this.#programs = readPat(section).size;
      }
    }
    if (this.#programs > 1) {
      warnings.push(
        `the source carries ${this.#programs} programs: all are sent, players show the first; filter it, with ffmpeg's ` +
          `-map 0:p:NUMBER, to send one`,
      );
    }
    if (this.isDone && this.#scrambled > SCRAMBLED_PART * this.#packets) {
      warnings.push("the source is scrambled: nobody will be able to watch it without its keys");
    }
    return warnings;
  }
}
