/** Listening for what others send to this page: lines of JSON from the engine, reports back to it. */
import { BASE } from "./engine.ts";

/** A stream that was sent here. */
export interface SentStream {
  /** Reports name it. */
  readonly turn: number;
  /** Path of the HLS playlist, below the engine's base. */
  readonly path: string;
  readonly title: string;
  readonly is_live: boolean;
}

/** The engine's commands to the page for this stream. */
export interface SentCommand {
  readonly turn: number;
  readonly kind: "pause" | "resume" | "seek" | "stop";
  readonly positionSeconds?: number;
}

/** What became of it. */
export interface Report {
  readonly turn: number;
  readonly state: "playing" | "paused" | "ended" | "failed";
  readonly position?: number;
  readonly duration?: number;
  readonly reason?: string;
}

/** Receives the streams and commands that are sent to this page. */
export interface Listener {
  open(stream: SentStream): void;
  command(command: SentCommand): void;
}

/** Until the page asks again after the connection broke, ms. */
const AGAIN_MS = 3000;

let seat = "";

/** Listens until `signal` fires; connects again when the engine was away. */
export async function listen(listener: Listener, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      const response = await fetch(`${BASE}/webui/player`, { method: "POST", signal });
      if (response.ok && response.body !== null) await read(response.body.getReader(), listener);
    } catch {
      // The engine is away, or the page no longer listens.
    }
    seat = "";
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

/** Reports to the engine how a stream ended. */
export function report({ turn, state, position, duration, reason }: Report): void {
  if (seat === "") return;
  const query = new URLSearchParams({ seat, turn: String(turn), state });
  if (position !== undefined && Number.isFinite(position)) query.set("position", String(position));
  if (duration !== undefined && Number.isFinite(duration)) query.set("duration", String(duration));
  if (reason !== undefined) query.set("reason", reason.slice(0, 500));
  void fetch(`${BASE}/webui/player/report?${query}`, { method: "POST", keepalive: true }).catch(() => {});
}

async function read(reader: ReadableStreamDefaultReader<Uint8Array>, listener: Listener): Promise<void> {
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    const lines = text.split("\n");
    text = lines.pop()!;
    for (const line of lines) {
      const said = JSON.parse(line) as { seat?: string; open?: SentStream; command?: SentCommand };
      if (said.seat !== undefined) seat = said.seat;
      if (said.open !== undefined) listener.open(said.open);
      if (said.command !== undefined) listener.command(said.command);
    }
  }
}
