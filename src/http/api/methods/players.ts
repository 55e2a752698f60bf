/** "Players" of section 4.4. */
import { z } from "zod";
import { defineMethod, type Method } from "../method.ts";

/** Section 2.5. */
const PLAYER = z.object({
  id: z.string(),
  type: z.enum(["proxy", "aircast"]),
  protocol: z.string().nullable(),
  name: z.string(),
  icon: z.string().nullable(),
});

/** See the module. */
export const PLAYER_METHODS: readonly Method[] = [
  defineMethod({
    name: "get_available_players",
    summary: "Players in reach; none so far, since the engine looks for none.",
    public: true,
    remote: true,
    params: z.object({ content_id: z.string().max(65_536).optional() }),
    result: z.object({ players: z.array(PLAYER) }),
    handle: () => ({ players: [] }),
  }),
];
