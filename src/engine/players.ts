/** The players in reach, and this engine as a player for others. */
import type { AccessPolicy } from "../http/address.ts";
import { ChromecastFinder } from "../players/chromecast/chromecast-finder.ts";
import { CastIdentity } from "../players/engines/cast-identity.ts";
import { CastReceiver } from "../players/engines/cast-receiver.ts";
import { CastRelay } from "../players/engines/cast-relay.ts";
import { CastSenders } from "../players/engines/cast-senders.ts";
import { ENGINE_SERVICE, EngineFinder } from "../players/engines/engine-finder.ts";
import { KodiFinder } from "../players/kodi/kodi-finder.ts";
import { MulticastDns } from "../players/mdns/multicast-dns.ts";
import { ServiceResponder } from "../players/mdns/responder.ts";
import { PagePlayers } from "../players/pages/page-players.ts";
import { Players } from "../players/players.ts";
import { ProgramFinder } from "../players/programs/program-finder.ts";
import { RendererFinder } from "../players/upnp/renderer-finder.ts";
import type { Ports, SocketAddress } from "../ports.ts";
import type { EngineOptions } from "./options.ts";

/** Longest name announced, characters: it has 63 bytes with the beginning of the key, four at most for each character. */
const MAX_NAME_CHARS = 12;
/** Digits of the key that make the announced names unique. */
const KEY_DIGITS = 12;
const DEFAULT_NAME = "millrace";

/** What the rest of the engine needs of them. */
export interface PlayerParts {
  readonly players: Players;
  readonly pages: PagePlayers;
  /** Streams that other engines send here; null: this engine accepts none. */
  readonly cast: { readonly receiver: CastReceiver; readonly senders: CastSenders; readonly key: string } | null;
  /** The engine is served at this address: it is announced where other machines reach it. */
  servedAt(address: SocketAddress): void;
  close(): Promise<void>;
}

/** Makes all of them. Rejects with `config`, or as the file port. */
export async function createPlayers(
  ports: Ports,
  options: EngineOptions,
  stateDir: string | null,
  policy: Pick<AccessPolicy, "allows">,
): Promise<PlayerParts> {
  const { clock, log } = ports;
  const discovery = options.playerDiscovery ?? true;
  const pages = new PagePlayers(ports);
  const programs = new ProgramFinder(ports, { programs: options.playerPrograms ?? [], discovery });
  const kodis = new KodiFinder(ports, options.kodis ?? []);
  const here = [pages, programs, kodis];
  if (!discovery) {
    const players = new Players(here, ports);
    return { players, pages, cast: null, servedAt: () => {}, close: () => players.close() };
  }
  const dns = new MulticastDns(ports);
  const identity = await CastIdentity.load(ports, stateDir);
  const senders = await CastSenders.load(ports, stateDir, options.allowCastFrom ?? []);
  const name = options.deviceName ?? DEFAULT_NAME;
  const players = new Players([
    ...here,
    new RendererFinder(ports),
    new ChromecastFinder(ports, dns),
    new EngineFinder(ports, dns, { identity, name, fetch: ports.fetch }),
  ], ports);
  const receiver = new CastReceiver({
    identity,
    senders,
    players,
    // A program at this machine rather than a page in a browser somewhere.
    choices: [programs, kodis, pages],
    playerId: options.castPlayer ?? null,
    relay: new CastRelay(ports),
    clock,
  });
  const responders: ServiceResponder[] = [];
  return {
    players,
    pages,
    cast: { receiver, senders, key: identity.key },
    servedAt({ host, port }) {
      if (isLoopback(host)) return;
      let output: "file" | "hls" | null = null;
      const isOffered = async (ownHost: string) => {
        output = await receiver.output();
        return (host === ownHost || isWildcard(host)) && policy.allows("intranet") && output !== null;
      };
      const service = announced(name, identity.key, port, () => output ?? "file");
      const responder = new ServiceResponder(dns, ports, service, isOffered);
      responders.push(responder);
      responder.open().catch((error) => log.log("warn", "other engines can't find this one as a player", { error }));
    },
    async close() {
      await Promise.all([players.close(), ...responders.map((responder) => responder.close())]);
    },
  };
}

function announced(name: string, key: string, port: number, output: () => string) {
  const short = key.slice(0, KEY_DIGITS);
  return {
    instance: `${[...name].slice(0, MAX_NAME_CHARS).join("")} ${short}`,
    type: ENGINE_SERVICE,
    hostLabel: `millrace-${short}`,
    port,
    facts: () => ["txtvers=1", `key=${key}`, `out=${output()}`, `name=${[...name].slice(0, 50).join("")}`],
  };
}

function isLoopback(host: string): boolean {
  return host === "::1" || host === "localhost" || host.startsWith("127.");
}

function isWildcard(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}
