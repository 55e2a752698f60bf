/** Reads and answers calls of control points: SOAP 1.1 as in UPnP Device Architecture 1.0 (section 3.2). */
import type { XmlElement } from "@rgrove/parse-xml";
import { escapeXml } from "../../bytes/xml.ts";
import { hasCode } from "../../errors.ts";
import { childrenOf, localName, readXml } from "../../upnp/xml.ts";

/** Largest call read, bytes: real calls have a kilobyte. */
export const MAX_CALL_BYTES = 16 * 1024;
/** Most tags, references and quotes of a call: `Search` has 20 tags, and its criteria as many references as words. */
const MAX_CALL_MARKS = 1024;

const HEADERS = { "content-type": 'text/xml; charset="utf-8"', ext: "" };

/** A call. */
export interface SoapCall {
  readonly action: string;
  /** An argument by name; empty when it is missing. */
  arg(name: string): string;
}

/** Refuses a call with an error number of UPnP. */
export class UpnpError extends Error {
  readonly errorCode: number;

  constructor(errorCode: number, message: string) {
    super(message);
    this.errorCode = errorCode;
  }
}

/** Parses a call. Throws `UpnpError` 401 for a body that calls no action. */
export function readCall(text: string): SoapCall {
  let action: XmlElement | undefined;
  try {
    const root = readXml(text, MAX_CALL_MARKS);
    const body = localName(root) === "Envelope"
      ? childrenOf(root).find((child) => localName(child) === "Body")
      : undefined;
    action = body && childrenOf(body)[0];
  } catch (error) {
    if (!hasCode(error, "protocol_violation")) throw error;
  }
  if (action === undefined) throw new UpnpError(401, "Invalid Action");
  const values = new Map(childrenOf(action).map((child) => [localName(child), child.text.trim()]));
  return { action: localName(action), arg: (name) => values.get(name) ?? "" };
}

/** The response with the results of `action`, in order; `type` is that of the service. */
export function soapResult(type: string, action: string, results: Readonly<Record<string, string | number>>): Response {
  const values = Object.entries(results).map(([name, value]) => `<${name}>${escapeXml(String(value))}</${name}>`);
  return envelope(`<u:${action}Response xmlns:u="${type}">${values.join("")}</u:${action}Response>`, 200);
}

/** The response that refuses a call, with UPnP's number and text. */
export function soapFault({ errorCode, message }: UpnpError): Response {
  const detail = `<errorCode>${errorCode}</errorCode><errorDescription>${escapeXml(message)}</errorDescription>`;
  return envelope(
    "<s:Fault><faultcode>s:Client</faultcode><faultstring>UPnPError</faultstring><detail>" +
      `<UPnPError xmlns="urn:schemas-upnp-org:control-1-0">${detail}</UPnPError></detail></s:Fault>`,
    500,
  );
}

function envelope(body: string, status: number): Response {
  const text = '<?xml version="1.0" encoding="utf-8"?>\n' +
    '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" ' +
    `s:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/"><s:Body>${body}</s:Body></s:Envelope>\n`;
  return new Response(text, { status, headers: HEADERS });
}
