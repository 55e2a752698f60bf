/** Another engine of the local network as a player: its player reads our stream once its user allowed that. */
import { MillraceError } from "../../errors.ts";
import type { SocketAddress } from "../../ports.ts";
import {
  IDLE,
  type Player,
  type PlayerCommand,
  type PlayerDevice,
  type PlayerStatus,
  type PlayerStream,
} from "../player-device.ts";
import { askDevice } from "../../upnp/http.ts";
import {
  CAST_REPLY,
  CAST_WELCOME,
  type CastCommand,
  COMMAND_PATH,
  HELLO_PATH,
  helloText,
  SIGNATURE_FIELD,
} from "./cast-command.ts";
import { type CastIdentity, isSignedBy, randomNonce } from "./cast-identity.ts";

/** What is known about the other engine. */
export interface EngineFacts {
  /** Its public key. */
  readonly key: string;
  readonly name: string;
  readonly at: SocketAddress;
  /** Output that its player reads: a program the file, a web page HLS. */
  readonly output: "file" | "hls";
}

/** This engine as the other one knows it. */
export interface CastSelf {
  readonly identity: CastIdentity;
  /** Name that it gives itself. */
  readonly name: string;
  readonly fetch: typeof fetch;
}

/** One engine in reach. */
export class EnginePlayer implements PlayerDevice {
  readonly facts: Player;
  readonly localOnly = false;
  readonly output: "file" | "hls";
  readonly host: string;
  readonly at: SocketAddress;
  readonly #self: CastSelf;
  readonly #key: string;
  readonly #base: URL;
  #hasOpened = false;

  constructor(self: CastSelf, { key, name, at, output }: EngineFacts) {
    this.facts = { id: `millrace:${key}`, type: "aircast", protocol: "millrace_cast", name, icon: null };
    this.output = output;
    this.host = at.host;
    this.at = at;
    this.#self = self;
    this.#key = key;
    this.#base = new URL(`http://${at.host}:${at.port}/`);
  }

  async open({ url, title, isLive }: PlayerStream, signal: AbortSignal): Promise<void> {
    await this.#ask({ kind: "open", url, output: this.output, title: title.slice(0, 1000), isLive }, signal);
    this.#hasOpened = true;
  }

  async status(signal: AbortSignal): Promise<PlayerStatus> {
    return this.#hasOpened ? await this.#ask({ kind: "status" }, signal) : IDLE;
  }

  async control(command: PlayerCommand, signal: AbortSignal): Promise<void> {
    if (!this.#hasOpened) {
      if (command.kind === "stop") return;
      throw new MillraceError("conflict", `${this.facts.name} plays nothing of this engine now`);
    }
    await this.#ask(command, signal);
  }

  /** Sends a command. Rejects with `conflict`, `unavailable` and the other engine's message, or as `askDevice`. */
  async #ask(action: CastCommand["action"], signal: AbortSignal): Promise<PlayerStatus> {
    const { identity, name } = this.#self;
    const nonce = await this.#greet(signal);
    const body = JSON.stringify({ sender: identity.key, nonce, name, action } satisfies CastCommand);
    const signature = await identity.sign("command", this.#key, body);
    const text = await this.#post(COMMAND_PATH, body, { [SIGNATURE_FIELD]: signature }, signal);
    const reply = this.#read(CAST_REPLY, text);
    if ("status" in reply) return reply.status;
    const { code, message } = reply.error;
    throw new MillraceError(code === "conflict" ? code : "unavailable", `${this.facts.name}: ${message}`);
  }

  /** Gets a nonce, and checks that the engine at this address has the key. */
  async #greet(signal: AbortSignal): Promise<string> {
    const challenge = randomNonce();
    const text = await this.#post(HELLO_PATH, JSON.stringify({ challenge }), {}, signal);
    const { nonce, signature } = this.#read(CAST_WELCOME, text);
    const said = helloText(challenge, nonce, this.#base.host);
    if (await isSignedBy(this.#key, signature, "hello", this.#key, said)) return nonce;
    throw new MillraceError("denied", `${this.facts.name} is not the engine that it says it is`);
  }

  async #post(path: string, body: string, headers: Record<string, string>, signal: AbortSignal): Promise<string> {
    const init = { method: "POST", headers: { "content-type": "application/json", ...headers }, body };
    const { text } = await askDevice(this.#self.fetch, new URL(path, this.#base), init, signal);
    return text;
  }

  #read<T>(schema: { parse(value: unknown): T }, text: string): T {
    try {
      return schema.parse(JSON.parse(text));
    } catch (cause) {
      const shown = text.replace(/\p{C}/gu, " ").slice(0, 200);
      throw new MillraceError("protocol_violation", `${this.facts.name} does not respond as an engine: ${shown}`, {
        cause,
      });
    }
  }
}
