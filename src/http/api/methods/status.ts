/** Versions and the state of the engine: "Access and status" of section 4.4. */
import * as z from "zod";
import { defineMethod, type Method } from "../method.ts";
import { versionInfo } from "../../service-routes.ts";
import { NONE, VERSION_INFO } from "../schemas.ts";

/** See the module. Both are open to pages: a player page may look for the engine, and they tell nothing of its user. */
export const STATUS_METHODS: readonly Method[] = [
  defineMethod({
    name: "get_status",
    summary: "The engine's version, and whether its playlist can be read.",
    public: true,
    remote: true,
    openToPages: true,
    params: NONE,
    result: z.object({ playlist_loaded: z.boolean(), version: VERSION_INFO }),
    handle: async (_params, { parts }) => ({
      playlist_loaded: await parts.playlist.isLoaded(),
      version: versionInfo(parts.runtime),
    }),
  }),
  defineMethod({
    name: "get_network_connection_status",
    summary: "Whether the engine reaches its network: a peer is connected, or a DHT node or tracker answered.",
    public: true,
    remote: true,
    openToPages: true,
    params: NONE,
    result: z.object({ connected: z.boolean() }),
    handle: (_params, { parts }) => ({ connected: parts.isConnected() }),
  }),
];
