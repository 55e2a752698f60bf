/** Engines that may play their streams here, and those that asked: the user decides once for each. */
import * as z from "zod";
import { hasCode, MillraceError } from "../../errors.ts";
import type { FilePort, Ports } from "../../ports.ts";
import { CAST_KEY } from "./cast-identity.ts";

const FILE = "cast-senders.json";
const MAX_FILE_BYTES = 64 * 1024;
/** Most allowed engines, and most that wait for a decision: more than a house has. */
const MAX_ALLOWED = 64;
const MAX_PENDING = 16;
/** Most pending keys of one machine: keys cost nothing to make. */
const MAX_PENDING_PER_HOST = 2;
/** A request that nobody decides is forgotten after this, ms. */
const PENDING_MS = 10 * 60_000;

const STORED = z.array(z.object({ key: z.string().regex(CAST_KEY), name: z.string().max(100) })).max(MAX_ALLOWED);

/** Another engine. */
export interface CastSender {
  /** Its public key. */
  readonly key: string;
  /** Name that it gives itself: a stranger's text. */
  readonly name: string;
}

/** An engine that asked for permission. */
export interface PendingSender extends CastSender {
  /** Address from which it asked. */
  readonly host: string;
  /** When it asked last, Unix ms. */
  readonly atMs: number;
}

/** What the list needs of the machine. */
export interface SenderPorts extends Pick<Ports, "clock" | "log"> {
  readonly files: FilePort;
}

/** The allowed and the pending engines. */
export class CastSenders {
  readonly #ports: SenderPorts;
  readonly #path: string | null;
  /** Keys that the user gave at the start; not stored. */
  readonly #named: ReadonlySet<string>;
  readonly #allowed = new Map<string, CastSender>();
  readonly #pending = new Map<string, PendingSender>();
  #writing: Promise<void> = Promise.resolve();

  private constructor(ports: SenderPorts, stateDir: string | null, named: readonly string[]) {
    this.#ports = ports;
    this.#path = stateDir === null ? null : `${stateDir}/${FILE}`;
    this.#named = new Set(named);
  }

  /** Loads the list from `stateDir`; keys in `named` are allowed as well. A damaged file allows nobody. Throws `config` for a malformed key. */
  static async load(ports: SenderPorts, stateDir: string | null, named: readonly string[]): Promise<CastSenders> {
    const wrong = named.find((key) => !CAST_KEY.test(key));
    if (wrong !== undefined) {
      throw new MillraceError("config", `allow-cast-from: ${wrong.slice(0, 80)} is no key of 64 hexadecimal digits`);
    }
    const senders = new CastSenders(ports, stateDir, named);
    await senders.#read();
    return senders;
  }

  /** Engines that are allowed. */
  allowed(): readonly CastSender[] {
    const named = [...this.#named].filter((key) => !this.#allowed.has(key)).map((key) => ({ key, name: "" }));
    return [...this.#allowed.values(), ...named];
  }

  /** Engines that wait for an answer, the newest first. */
  pending(): readonly PendingSender[] {
    this.#forget();
    return [...this.#pending.values()].toReversed();
  }

  isAllowed(key: string): boolean {
    return this.#named.has(key) || this.#allowed.has(key);
  }

  /** Remembers that an engine asked, unless too many are pending. */
  ask(sender: CastSender, host: string): void {
    this.#forget();
    const known = this.#pending.delete(sender.key);
    const here = [...this.#pending.values()].filter((pending) => pending.host === host);
    if (this.#pending.size >= MAX_PENDING || here.length >= MAX_PENDING_PER_HOST) return;
    this.#pending.set(sender.key, { ...sender, host, atMs: this.#ports.clock.now() });
    if (known) return;
    this.#ports.log.log("info", "another engine asks to play here: allow it in the settings, or by --allow-cast-from", {
      name: sender.name,
      host,
      key: sender.key,
    });
  }

  /** Allows an engine that asked, or refuses one. Rejects with `not_found`, `too_busy`, or as the file port. */
  async decide(key: string, isAllowed: boolean): Promise<void> {
    this.#forget();
    const asking = this.#pending.get(key);
    if (asking === undefined && !this.#allowed.has(key)) {
      throw new MillraceError("not_found", "no engine with this key asked within the last ten minutes, or is allowed");
    }
    if (isAllowed && asking !== undefined) {
      if (this.#allowed.size >= MAX_ALLOWED) {
        throw new MillraceError("too_busy", `${MAX_ALLOWED} engines are allowed already: remove one first`);
      }
      this.#allowed.set(key, { key, name: asking.name });
    } else if (!isAllowed) this.#allowed.delete(key);
    this.#pending.delete(key);
    await this.#write();
  }

  #forget(): void {
    const oldestMs = this.#ports.clock.now() - PENDING_MS;
    for (const [key, { atMs }] of this.#pending) if (atMs < oldestMs) this.#pending.delete(key);
  }

  async #read(): Promise<void> {
    if (this.#path === null) return;
    try {
      const bytes = await this.#ports.files.readFile(this.#path, { maxBytes: MAX_FILE_BYTES });
      for (const sender of STORED.parse(JSON.parse(new TextDecoder().decode(bytes)))) {
        this.#allowed.set(sender.key, sender);
      }
    } catch (error) {
      if (hasCode(error, "not_found")) return;
      this.#ports.log.log("error", "the list of engines that may play here can't be read: allow them again", { error });
    }
  }

  #write(): Promise<void> {
    const path = this.#path;
    if (path === null) return Promise.resolve();
    const written = this.#writing.then(async () => {
      const text = JSON.stringify([...this.#allowed.values()]);
      await this.#ports.files.writeFile(path, new TextEncoder().encode(text), { mode: 0o600 });
    });
    this.#writing = written.catch(() => {});
    return written;
  }
}
