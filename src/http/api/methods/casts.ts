/** Which other engines may play their streams here: our additions. */
import * as z from "zod";
import { MillraceError } from "../../../errors.ts";
import { type Method, methodsWith } from "../method.ts";
import type { ApiParts } from "../parts.ts";
import { NONE, OK } from "../schemas.ts";

const defineMethod = methodsWith<"cast">();

const KEY = z.string().regex(/^[0-9a-f]{64}$/, "64 hexadecimal digits are expected").describe(
  "Public key of an engine",
);

/** The methods by which a person lets other engines play here. */
export const CAST_METHODS: readonly Method[] = [
  defineMethod({
    name: "get_cast_senders",
    summary: "This engine's own key, other engines that may play their streams here, and those that asked to.",
    public: false,
    remote: true,
    params: NONE,
    result: z.object({
      key: KEY.nullable().describe("Null: this engine takes nothing, as it looks for no players"),
      allowed: z.array(z.object({ key: KEY, name: z.string() })),
      pending: z.array(z.object({ key: KEY, name: z.string(), host: z.string(), time: z.int() })),
    }),
    handle(_params, { parts: { cast } }) {
      if (cast === null) return { key: null, allowed: [], pending: [] };
      const pending = cast.senders.pending().map(({ key, name, host, atMs }) => {
        return { key, name, host, time: Math.floor(atMs / 1000) };
      });
      return { key: cast.key, allowed: [...cast.senders.allowed()], pending };
    },
  }),
  defineMethod({
    name: "set_cast_sender",
    summary: "Lets another engine that asked play its streams here, refuses it, or takes the permission back.",
    public: false,
    remote: true,
    params: z.object({ key: KEY, value: z.boolean().describe("True allows") }),
    result: OK,
    async handle({ key, value }, { parts }) {
      await castOf(parts).senders.decide(key, value);
      return "ok" as const;
    },
  }),
];

function castOf({ cast }: Pick<ApiParts, "cast">): NonNullable<ApiParts["cast"]> {
  if (cast === null) {
    throw new MillraceError("unavailable", "this engine takes no streams of others: --no-player-discovery");
  }
  return cast;
}
