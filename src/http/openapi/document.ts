/** The OpenAPI document of the engine, from which generators make clients. The method API's part is made from the registry. */
import { VERSION } from "../../version.ts";
import { searchForClients } from "../api/methods/search.ts";
import { METHOD_GROUPS } from "../api/registry.ts";
import { methodPaths } from "./methods.ts";
import { playbackPaths } from "./playback.ts";
import { Components, type Json } from "./schema.ts";
import { servicePaths } from "./services.ts";

const ABOUT =
  "Playback for players, and methods for programs. Every method has an operation of its own below /server/api; " +
  "/service/api serves the same. A call that fails is answered with status 200 and `error`; one that succeeds has `result` and " +
  "`error` null. Playback has `response` and `error`, one of which is null.";

const TAGS: readonly (readonly [string, string])[] = [
  ["Playback", "Starts of streams."],
  ["Session", "State, commands and events of a running session."],
  ["Streams", "What players read."],
  ...METHOD_GROUPS.map(({ name, summary }) => [name, summary] as const),
  ["Any method", "The paths that all methods share."],
  ["Service", "Version, the playlist for players, keys, this document."],
];

const TOKEN: Json = {
  type: "apiKey",
  in: "query",
  name: "token",
  description:
    "The access token: `millrace token` shows it, get_api_access_token returns it to programs on this machine.",
};

/** Everything but the address, made at the first request: it takes milliseconds, and anybody may ask. */
let described: Json | null = null;
/** The same as JSON in UTF-8, without the last brace: 190 KB, which take milliseconds to write, too. */
let beginning: Uint8Array | null = null;

/** The document (OpenAPI 3.0.3); `baseUrl` is the engine's address as this caller knows it. */
export function openApi(baseUrl: string): Json {
  return { ...described ??= describe(), servers: [{ url: baseUrl }] };
}

/** The same as JSON in UTF-8, in parts: copies of it would have to be collected, which takes 2 ms for each. */
export function openApiParts(baseUrl: string): readonly Uint8Array[] {
  const encoder = new TextEncoder();
  beginning ??= encoder.encode(JSON.stringify(described ??= describe()).slice(0, -1));
  return [beginning, encoder.encode(`,"servers":${JSON.stringify([{ url: baseUrl }])}}`)];
}

function describe(): Json {
  const components = new Components();
  const paths = {
    ...playbackPaths(components),
    ...methodPaths(METHOD_GROUPS, components),
    ...servicePaths(searchForClients(), components),
  };
  return {
    openapi: "3.0.3",
    info: {
      title: "millrace",
      version: VERSION,
      description: ABOUT,
      license: { name: "MIT", url: "https://opensource.org/license/mit" },
    },
    tags: TAGS.map(([name, description]) => ({ name, description })),
    paths,
    components: {
      securitySchemes: { token: TOKEN },
      parameters: components.parameters,
      schemas: components.schemas,
    },
  };
}
