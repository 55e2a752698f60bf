/** Connections to web browsers. The library is loaded when the first one is made. */
import { MillraceError } from "../../src/errors.ts";
import type { PageConnection, PageConnectionOptions, PagePort, TcpConnection } from "../../src/ports.ts";
import { deferred } from "../../src/bytes/deferred.ts";
import { ChannelConnection } from "./channel-connection.ts";
import { openWebSocket } from "./web-socket.ts";

/** See `PagePort`. */
export const pages: PagePort = {
  openWebSocket,
  async load() {
    await library();
  },
  async offer(options) {
    const attempt = await begin(options);
    try {
      attempt.use(attempt.peer.createDataChannel("millrace"));
      await attempt.peer.setLocalDescription(await attempt.peer.createOffer());
      return await attempt.described();
    } catch (error) {
      throw attempt.failed(error);
    }
  },
  async answer(sdp, options) {
    const attempt = await begin(options);
    try {
      attempt.peer.onDataChannel.once((channel) => attempt.use(channel));
      await attempt.peer.setRemoteDescription({ type: "offer", sdp });
      await attempt.peer.setLocalDescription(await attempt.peer.createAnswer());
      return await attempt.described();
    } catch (error) {
      throw attempt.failed(error);
    }
  },
};

async function library(): Promise<typeof import("werift")> {
  try {
    return await import("werift");
  } catch (cause) {
    const message = "web browsers cannot be reached: webrtc.mjs of this release is not beside the program";
    throw new MillraceError("unavailable", message, { cause });
  }
}

async function begin(options: PageConnectionOptions): Promise<Attempt> {
  const { RTCPeerConnection } = await library();
  const peer = new RTCPeerConnection({
    // The library would ask a public one.
    iceServers: [],
    ...(options.usesLoopback && { iceAdditionalHostAddresses: ["127.0.0.1"] }),
    iceFilterCandidatePair: ({ remoteAddr: [host, port] }) => options.allows({ host, port }),
  });
  return new Attempt(peer);
}

type Peer = InstanceType<typeof import("werift").RTCPeerConnection>;
type Channel = ReturnType<Peer["createDataChannel"]>;

class Attempt {
  readonly peer: Peer;
  readonly #opened = deferred<TcpConnection>();
  #isOver = false;

  constructor(peer: Peer) {
    this.peer = peer;
    this.#opened.promise.catch(() => {});
    peer.connectionStateChange.subscribe((state) => {
      if (state === "failed" || state === "closed" || state === "disconnected") this.close();
    });
  }

  use(channel: Channel): void {
    const open = () => this.#opened.resolve(new ChannelConnection(channel, this.peer));
    if (channel.readyState === "open") return open();
    channel.stateChanged.subscribe((state) => {
      if (state === "open") open();
      else if (state === "closed") this.close();
    });
  }

  async described(): Promise<PageConnection> {
    const { peer } = this;
    if (peer.iceGatheringState !== "complete") {
      await peer.iceGatheringStateChange.watch((state) => state === "complete");
    }
    return {
      sdp: peer.localDescription!.sdp,
      accept: async (sdp) => {
        try {
          await peer.setRemoteDescription({ type: "answer", sdp });
        } catch (error) {
          throw this.failed(error);
        }
      },
      opened: this.#opened.promise,
      close: () => this.close(),
    };
  }

  failed(cause: unknown): MillraceError {
    this.close();
    return new MillraceError("protocol_violation", "the browser's description cannot be used", { cause });
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#opened.reject(new MillraceError("connection_failed", "the browser was not reached"));
    void this.peer.close().catch(() => {});
  }
}
