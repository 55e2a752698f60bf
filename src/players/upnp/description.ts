/** What a device says of itself (UPnP Device Architecture 1.1, section 2). */
import { MillraceError } from "../../errors.ts";
import { askDevice } from "./http.ts";
import { elementsOf, readXml, textIn } from "./xml.ts";

/** Longest name shown, characters. */
const MAX_NAME_CHARS = 200;

/** A device that renders media. */
export interface RendererDescription {
  /** Unique Device Name: the same wherever the device is and whenever it was started. */
  readonly udn: string;
  readonly name: string;
  readonly icon: string | null;
  /** Where AVTransport is controlled, on the device itself. */
  readonly avTransport: ServiceAddress;
  /** Where ConnectionManager is; null where the device has none. */
  readonly connectionManager: ServiceAddress | null;
}

/** A service of a device. */
export interface ServiceAddress {
  /** `urn:schemas-upnp-org:service:AVTransport:1`. */
  readonly type: string;
  readonly controlUrl: URL;
}

/** The description at `location`. Rejects as `askDevice`, and with `protocol_violation` for what describes no renderer. */
export async function describeRenderer(
  fetcher: typeof fetch,
  location: URL,
  signal: AbortSignal,
): Promise<RendererDescription> {
  const { status, text } = await askDevice(fetcher, location, {}, signal);
  if (status !== 200) throw new MillraceError("protocol_violation", `the device answered ${status}`);
  return readDescription(text, location);
}

/** See `describeRenderer`. */
export function readDescription(text: string, location: URL): RendererDescription {
  const root = readXml(text);
  const base = address(textIn(root, "URLBase"), location) ?? location;
  const services = [...elementsOf(root, "service")].flatMap((service): ServiceAddress[] => {
    const controlUrl = address(textIn(service, "controlURL"), base);
    const type = textIn(service, "serviceType");
    // The type is part of a header later.
    return controlUrl === null || !/^urn:[\w:.-]{1,200}$/.test(type) ? [] : [{ type, controlUrl }];
  });
  const serviceOf = (name: string) => services.find(({ type }) => type.includes(`:service:${name}:`)) ?? null;
  const udn = textIn(root, "UDN");
  const avTransport = serviceOf("AVTransport");
  if (avTransport === null || !/^uuid:[\w.:-]{1,100}$/i.test(udn)) {
    throw new MillraceError("protocol_violation", "the device is no media renderer");
  }
  const icons = [...elementsOf(root, "icon")].map((icon) => address(textIn(icon, "url"), base)?.href ?? null);
  return {
    udn,
    name: textIn(root, "friendlyName").slice(0, MAX_NAME_CHARS) || location.hostname,
    icon: icons.find((icon) => icon !== null) ?? null,
    avTransport,
    connectionManager: serviceOf("ConnectionManager"),
  };
}

/** An address on the machine that `base` is on; null for any other: devices send the engine nowhere else. */
function address(text: string, base: URL): URL | null {
  if (text === "") return null;
  try {
    const url = new URL(text, base);
    return url.protocol === "http:" && url.hostname === base.hostname ? url : null;
  } catch {
    return null;
  }
}
