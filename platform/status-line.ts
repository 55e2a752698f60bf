/** Prints what `broadcast` and `relay` show: the facts once, then figures each second. */
import { faultFields, guarded } from "../src/bytes/guarded-clock.ts";
import type { Logger } from "../src/ports.ts";
/** Time between two prints of the figures, ms. */
const EVERY_MS = 1000;

/** Where to print: standard output. */
export interface StatusOutput {
  readonly isTTY?: boolean;
  write(text: string): unknown;
  on(event: "error", listener: () => void): unknown;
}

type Fields = Readonly<Record<string, string | number | null>>;

/** Figures of either command; null while unknown. */
export interface Figures {
  /** What the source (or, for a relay, the swarm) delivers, bytes per second. */
  readonly bitrate: number | null;
  readonly peers: number;
  /** Bytes per second. */
  readonly upload: number;
  /** Number of the newest piece, -1 before the first; null when unknown. */
  readonly head: number | null;
  /** Why the source was lost; null while it is not. */
  readonly lost: string | null;
}

/** On a terminal one line that is rewritten; with `--json` one object per line; otherwise only the facts. */
export class StatusLine {
  readonly #json: boolean;
  readonly #out: StatusOutput;
  readonly #figures: () => Figures;
  readonly #log: Logger;
  #timer: ReturnType<typeof setInterval> | null = null;
  #isOpen = false;
  #isGone = false;

  /** `log` takes a fault of ours in the figures: that line is left out, and the next one comes in time. */
  constructor(json: boolean, out: StatusOutput, figures: () => Figures, log: Logger) {
    this.#json = json;
    this.#out = out;
    this.#figures = figures;
    this.#log = log;
    // The program that reads the output may end; the broadcast goes on.
    out.on("error", () => {
      this.#isGone = true;
    });
  }

  /** Prints the facts, and begins to print figures. */
  begin(event: string, facts: Fields): void {
    this.tell(event, facts);
    if (this.#json || this.#out.isTTY === true) {
      const failed = (error: unknown) => this.#log.log("error", "figures were not printed", faultFields(error));
      this.#timer = setInterval(guarded(() => this.#tell(), failed), EVERY_MS);
    }
  }

  /** Prints facts. */
  tell(event: string, facts: Fields): void {
    if (this.#json) this.#object(event, facts);
    else {
      for (const [name, value] of Object.entries(facts)) {
        if (value !== null) {
          this.#write(
            `${name.replaceAll("_", " ").padEnd(15)}${name === "bitrate" ? megabits(Number(value)) : value}\n`,
          );
        }
      }
    }
  }

  /** Stops the figures and prints the last line. */
  end(facts: Fields): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    if (this.#json) this.#object("end", facts);
    else if (this.#isOpen) this.#write("\n");
  }

  #tell(): void {
    const figures = this.#figures();
    if (this.#json) return this.#object("status", { ...figures });
    this.#isOpen = true;
    this.#write(`\r\x1b[K${statusText(figures)}`);
  }

  #write(text: string): void {
    if (!this.#isGone) this.#out.write(text);
  }

  #object(event: string, fields: Fields): void {
    this.#write(`${JSON.stringify({ event, ...fields })}\n`);
  }
}

/** The line on a terminal. */
export function statusText({ bitrate, peers, upload, head, lost }: Figures): string {
  const source = lost === null ? megabits(bitrate) : `source lost: ${lost.slice(0, 60)}`;
  const newest = head === null ? "" : `  head ${head < 0 ? "-" : head}`;
  return `${source}  peers ${peers}  upload ${megabits(upload)}${newest}`;
}

function megabits(bytesPerS: number | null): string {
  return bytesPerS === null ? "- Mb/s" : `${(bytesPerS * 8 / 1e6).toFixed(2)} Mb/s`;
}
