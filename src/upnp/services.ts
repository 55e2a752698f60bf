/** The services that a device offers (UPnP Device Architecture 1.1, section 2.3). */
import type { XmlElement } from "@rgrove/parse-xml";
import { childText, elementsOf, textIn } from "./xml.ts";

/** Most services of one device that are looked at: real ones have up to 20. */
const MAX_SERVICES = 64;

/** A service of a device. */
export interface ServiceAddress {
  /** `urn:schemas-upnp-org:service:AVTransport:1`. */
  readonly type: string;
  readonly controlUrl: URL;
}

/** The services in a device description from `location`, and the base of its relative addresses. */
export function servicesOf(root: XmlElement, location: URL): { base: URL; services: readonly ServiceAddress[] } {
  const base = deviceAddress(textIn(root, "URLBase"), location) ?? location;
  const services = elementsOf(root, "service").take(MAX_SERVICES).flatMap((service): ServiceAddress[] => {
    const controlUrl = deviceAddress(childText(service, "controlURL"), base);
    const type = childText(service, "serviceType");
    // The type is part of a header later.
    return controlUrl === null || !/^urn:[\w:.-]{1,200}$/.test(type) ? [] : [{ type, controlUrl }];
  }).toArray();
  return { base, services };
}

/** An address on the machine that `base` is on; null for any other: devices send the engine nowhere else. */
export function deviceAddress(text: string, base: URL): URL | null {
  if (text === "") return null;
  try {
    const url = new URL(text, base);
    return url.protocol === "http:" && url.hostname === base.hostname ? url : null;
  } catch {
    return null;
  }
}
