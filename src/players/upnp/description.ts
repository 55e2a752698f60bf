/** Reads a device's description (UPnP Device Architecture 1.1, section 2). */
import { MillraceError } from "../../errors.ts";
import { askDevice } from "../../upnp/http.ts";
import { deviceAddress, type ServiceAddress, servicesOf } from "../../upnp/services.ts";
import { childText, elementsOf, readInTurn, readXml, textIn } from "../../upnp/xml.ts";

/** Longest name shown, characters. */
const MAX_NAME_CHARS = 200;
/** Most icons looked at: real devices have one per size, up to 8. */
const MAX_ICONS = 32;

/** A device that renders media. */
export interface RendererDescription {
  /** Unique Device Name: stays the same when the device moves or restarts. */
  readonly udn: string;
  readonly name: string;
  readonly icon: string | null;
  /** Control address of AVTransport, on the device itself. */
  readonly avTransport: ServiceAddress;
  /** Control address of ConnectionManager; null when the device has none. */
  readonly connectionManager: ServiceAddress | null;
}

/**
 * Fetches the description at `location`.
 *
 * @throws `connection_failed`, `too_large`, or the signal's reason: as `askDevice`; and with `protocol_violation` for
 * anything but a renderer
 */
export async function describeRenderer(
  fetcher: typeof fetch,
  location: URL,
  signal: AbortSignal,
): Promise<RendererDescription> {
  const { status, text } = await askDevice(fetcher, location, {}, signal);
  if (status !== 200) throw new MillraceError("protocol_violation", `the device answered ${status}`);
  return await readInTurn(() => readDescription(text, location), signal);
}

/** Parses a description; throws as `describeRenderer`. */
export function readDescription(text: string, location: URL): RendererDescription {
  const root = readXml(text);
  const { base, services } = servicesOf(root, location);
  const serviceOf = (name: string) => services.find(({ type }) => type.includes(`:service:${name}:`)) ?? null;
  const udn = textIn(root, "UDN");
  const avTransport = serviceOf("AVTransport");
  if (avTransport === null || !/^uuid:[\w.:-]{1,100}$/i.test(udn)) {
    throw new MillraceError("protocol_violation", "the device is no media renderer");
  }
  const icons = elementsOf(root, "icon").take(MAX_ICONS).map((icon) => deviceAddress(childText(icon, "url"), base));
  return {
    udn,
    name: textIn(root, "friendlyName").slice(0, MAX_NAME_CHARS) || location.hostname,
    icon: icons.find((icon) => icon !== null)?.href ?? null,
    avTransport,
    connectionManager: serviceOf("ConnectionManager"),
  };
}
