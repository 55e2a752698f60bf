/** Calling a device's service (UPnP Device Architecture 1.1, section 3: SOAP 1.1 over HTTP). */
import { escapeXml } from "../bytes/xml.ts";
import { MillraceError } from "../errors.ts";
import type { ServiceAddress } from "./services.ts";
import { askDevice } from "./http.ts";
import { readInTurn, readXml, textIn } from "./xml.ts";

/** Longest reason of a device shown, characters. */
const MAX_REASON_CHARS = 200;

/**
 * Calls `action` with `args`; resolves with a function that gives output arguments by name, empty where there are none.
 *
 * @throws `connection_failed`, `too_large`, or the signal's reason: as `askDevice`; with `protocol_violation` for
 * anything but SOAP, and with `unavailable` and the device's own reason when it refuses
 */
export async function callAction(
  fetcher: typeof fetch,
  { type, controlUrl }: ServiceAddress,
  action: string,
  args: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<(name: string) => string> {
  const values = Object.entries(args).map(([name, value]) => `<${name}>${escapeXml(value)}</${name}>`).join("");
  const { status, text } = await askDevice(fetcher, controlUrl, {
    method: "POST",
    headers: { "content-type": 'text/xml; charset="utf-8"', soapaction: `"${type}#${action}"` },
    body:
      '<?xml version="1.0" encoding="utf-8"?>\n<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" s:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/">' +
      `<s:Body><u:${action} xmlns:u="${type}">${values}</u:${action}></s:Body></s:Envelope>`,
  }, signal);
  if (status === 200) {
    const root = await readInTurn(() => readXml(text), signal);
    return (name) => textIn(root, name);
  }
  const { reason, code } = await readInTurn(() => refusalOf(status, text), signal);
  throw new MillraceError("unavailable", `the device refuses ${action}: ${reason}`, { detail: { upnpError: code } });
}

/** The code of the UPnPError with which a device refused an action; null when it gave none. */
export function upnpErrorOf(error: unknown): number | null {
  const code = error instanceof MillraceError ? error.detail?.["upnpError"] : null;
  return typeof code === "number" ? code : null;
}

/** A UPnPError's code and words, or the HTTP status. */
function refusalOf(status: number, text: string): { readonly reason: string; readonly code: number | null } {
  const unknown = { reason: `HTTP ${status}`, code: null };
  try {
    const root = readXml(text);
    const code = textIn(root, "errorCode");
    const reason = `${textIn(root, "errorDescription")} (${code})`;
    if (reason === " ()") return unknown;
    return { reason: reason.slice(0, MAX_REASON_CHARS), code: /^\d{1,4}$/.test(code) ? Number(code) : null };
  } catch {
    return unknown;
  }
}
