/** Devices of the household that are signed in to the page. Our additions. */
import * as z from "zod";
import { type Method, methodsWith } from "../method.ts";
import { NONE, OK } from "../schemas.ts";

const defineMethod = methodsWith<"devices">();

const ID = z.int().min(1).describe("Number of a device");
/** Seconds since 1970. */
const TIME = z.int().min(0);
const DEVICE = z.object({
  id: ID,
  login: z.string().describe("Address of the account"),
  name: z.string().describe("What its browser says it is; may be empty"),
  created_at: TIME,
  seen_at: TIME.describe("When it was used last, to the hour"),
});

/** The methods. */
export const DEVICE_METHODS: readonly Method[] = [
  defineMethod({
    name: "get_devices",
    summary: "Returns the devices on which somebody signed in to the page by an account's password.",
    public: false,
    remote: true,
    params: NONE,
    result: z.object({ devices: z.array(DEVICE) }),
    handle: async (_params, { parts }) => ({
      devices: (await parts.devices.list()).map(({ createdAt, seenAt, ...same }) => {
        return { ...same, created_at: createdAt, seen_at: seenAt };
      }),
    }),
  }),
  defineMethod({
    name: "remove_device",
    summary: "Signs a device out: its token opens nothing any more.",
    public: false,
    remote: true,
    params: z.object({ id: ID }),
    result: OK,
    async handle({ id }, { parts }) {
      await parts.devices.remove(id);
      return "ok" as const;
    },
  }),
];
