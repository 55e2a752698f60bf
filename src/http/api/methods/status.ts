/** Versions and the state of the engine: "Access and status" of section 4.4. */
import * as z from "zod";
import { type Method, methodsWith } from "../method.ts";
import { engineStatus } from "../../service-routes.ts";
import { NONE, VERSION_INFO } from "../schemas.ts";

const defineMethod = methodsWith<"isConnected" | "playlist" | "runtime">();

/** The methods of version and state. Pages may read both: a player page may look for the engine, and they reveal nothing about its user. */
export const STATUS_METHODS: readonly Method[] = [
  defineMethod({
    name: "get_status",
    summary: "The engine's version, and whether its playlist can be read.",
    public: true,
    remote: true,
    openToPages: true,
    params: NONE,
    result: z.object({
      playlist_loaded: z.boolean(),
      version: VERSION_INFO,
      notice: z.string().optional().describe("Our addition: what the user should know, where there is something"),
    }),
    handle: (_params, { parts }) => engineStatus(parts),
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
