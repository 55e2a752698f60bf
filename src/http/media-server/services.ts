/** Descriptions of the media server's device and services (UPnP Device Architecture 1.0, section 2). */
import { toHex } from "../../bytes/hex.ts";
import { escapeXml } from "../../bytes/xml.ts";
import { VERSION } from "../../version.ts";

/** Type of the device. */
export const DEVICE_TYPE = "urn:schemas-upnp-org:device:MediaServer:1";

/** Path of the device description, below the engine's address. */
export const DESCRIPTION_PATH = "/dlna/device.xml";

/** One argument of an action: its name, its direction, and the variable that defines its type. */
type Argument = readonly [name: string, direction: "in" | "out", variable: string];

/** A service: its actions and its variables, which are of type `string` unless listed otherwise. */
export interface Service {
  readonly type: string;
  readonly id: string;
  /** Name in addresses. */
  readonly name: string;
  readonly actions: Readonly<Record<string, readonly Argument[]>>;
  readonly numbers: readonly string[];
}

const SEARCHED: readonly Argument[] = [
  ["Filter", "in", "A_ARG_TYPE_Filter"],
  ["StartingIndex", "in", "A_ARG_TYPE_Index"],
  ["RequestedCount", "in", "A_ARG_TYPE_Count"],
  ["SortCriteria", "in", "A_ARG_TYPE_SortCriteria"],
  ["Result", "out", "A_ARG_TYPE_Result"],
  ["NumberReturned", "out", "A_ARG_TYPE_Count"],
  ["TotalMatches", "out", "A_ARG_TYPE_Count"],
  ["UpdateID", "out", "A_ARG_TYPE_UpdateID"],
];

/** ContentDirectory:1, without the actions that change the library. */
export const CONTENT_DIRECTORY: Service = {
  type: "urn:schemas-upnp-org:service:ContentDirectory:1",
  id: "urn:upnp-org:serviceId:ContentDirectory",
  name: "content-directory",
  actions: {
    GetSearchCapabilities: [["SearchCaps", "out", "SearchCapabilities"]],
    GetSortCapabilities: [["SortCaps", "out", "SortCapabilities"]],
    GetSystemUpdateID: [["Id", "out", "SystemUpdateID"]],
    Browse: [["ObjectID", "in", "A_ARG_TYPE_ObjectID"], ["BrowseFlag", "in", "A_ARG_TYPE_BrowseFlag"], ...SEARCHED],
    Search: [
      ["ContainerID", "in", "A_ARG_TYPE_ObjectID"],
      ["SearchCriteria", "in", "A_ARG_TYPE_SearchCriteria"],
      ...SEARCHED,
    ],
  },
  numbers: ["SystemUpdateID", "A_ARG_TYPE_Index", "A_ARG_TYPE_Count", "A_ARG_TYPE_UpdateID"],
};

/** ConnectionManager:1. */
export const CONNECTION_MANAGER: Service = {
  type: "urn:schemas-upnp-org:service:ConnectionManager:1",
  id: "urn:upnp-org:serviceId:ConnectionManager",
  name: "connection-manager",
  actions: {
    GetProtocolInfo: [["Source", "out", "SourceProtocolInfo"], ["Sink", "out", "SinkProtocolInfo"]],
    GetCurrentConnectionIDs: [["ConnectionIDs", "out", "CurrentConnectionIDs"]],
    GetCurrentConnectionInfo: [
      ["ConnectionID", "in", "A_ARG_TYPE_ConnectionID"],
      ["RcsID", "out", "A_ARG_TYPE_RcsID"],
      ["AVTransportID", "out", "A_ARG_TYPE_AVTransportID"],
      ["ProtocolInfo", "out", "A_ARG_TYPE_ProtocolInfo"],
      ["PeerConnectionManager", "out", "A_ARG_TYPE_ConnectionManager"],
      ["PeerConnectionID", "out", "A_ARG_TYPE_ConnectionID"],
      ["Direction", "out", "A_ARG_TYPE_Direction"],
      ["Status", "out", "A_ARG_TYPE_ConnectionStatus"],
    ],
  },
  numbers: [],
};

/** Both services. */
export const SERVICES: readonly Service[] = [CONTENT_DIRECTORY, CONNECTION_MANAGER];

/** Variables that are signed: the ids of connections. */
const SIGNED = new Set(["A_ARG_TYPE_ConnectionID", "A_ARG_TYPE_RcsID", "A_ARG_TYPE_AVTransportID"]);
/** Allowed values from the standard. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  A_ARG_TYPE_BrowseFlag: ["BrowseMetadata", "BrowseDirectChildren"],
  A_ARG_TYPE_ConnectionStatus: [
    "OK",
    "ContentFormatMismatch",
    "InsufficientBandwidth",
    "UnreliableChannel",
    "Unknown",
  ],
  A_ARG_TYPE_Direction: ["Input", "Output"],
};

/**
 * Unique Device Name by which televisions recognise the server. It is derived from the access token by a hash, so it stays
 * the same with the token and reveals nothing about it. It has the form of a UUID of version 8 (RFC 9562).
 */
export async function mediaServerUdn(accessToken: string): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(`media server ${accessToken}`));
  const bytes = new Uint8Array(hash).subarray(0, 16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x80;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const digits = toHex(bytes);
  return `uuid:${[[0, 8], [8, 12], [12, 16], [16, 20], [20, 32]].map(([a, b]) => digits.slice(a, b)).join("-")}`;
}

/** The device description for a caller that knows the engine as `host`. */
export function deviceDescription(host: string, udn: string): string {
  const services = SERVICES.map(({ type, id, name }) =>
    `<service><serviceType>${type}</serviceType><serviceId>${id}</serviceId><SCPDURL>/dlna/${name}.xml</SCPDURL>` +
    // No events: they would mean calling addresses that strangers name.
    `<controlURL>/dlna/control/${name}</controlURL><eventSubURL></eventSubURL></service>`
  );
  return `<?xml version="1.0" encoding="UTF-8"?>
<root xmlns="urn:schemas-upnp-org:device-1-0" xmlns:dlna="urn:schemas-dlna-org:device-1-0">
<specVersion><major>1</major><minor>0</minor></specVersion>
<device>
<deviceType>${DEVICE_TYPE}</deviceType>
<friendlyName>millrace on ${escapeXml(host)}</friendlyName>
<manufacturer>millrace</manufacturer>
<modelName>millrace</modelName>
<modelNumber>${escapeXml(VERSION)}</modelNumber>
<UDN>${udn}</UDN>
<dlna:X_DLNADOC>DMS-1.50</dlna:X_DLNADOC>
<serviceList>${services.join("")}</serviceList>
</device>
</root>
`;
}

/** The description of a service: its actions and its variables. */
export function serviceDescription({ actions, numbers }: Service): string {
  const variables = new Set(Object.values(actions).flatMap((args) => args.map(([, , variable]) => variable)));
  const actionXml = Object.entries(actions).map(([name, args]) => {
    const list = args.map(([argument, direction, variable]) =>
      `<argument><name>${argument}</name><direction>${direction}</direction>` +
      `<relatedStateVariable>${variable}</relatedStateVariable></argument>`
    );
    return `<action><name>${name}</name><argumentList>${list.join("")}</argumentList></action>`;
  });
  const variableXml = [...variables].map((name) => {
    const type = numbers.includes(name) ? "ui4" : SIGNED.has(name) ? "i4" : "string";
    const allowed = ALLOWED[name]?.map((value) => `<allowedValue>${value}</allowedValue>`).join("");
    const list = allowed === undefined ? "" : `<allowedValueList>${allowed}</allowedValueList>`;
    return `<stateVariable sendEvents="no"><name>${name}</name><dataType>${type}</dataType>${list}</stateVariable>`;
  });
  return `<?xml version="1.0" encoding="UTF-8"?>
<scpd xmlns="urn:schemas-upnp-org:service-1-0">
<specVersion><major>1</major><minor>0</minor></specVersion>
<actionList>${actionXml.join("")}</actionList>
<serviceStateTable>${variableXml.join("")}</serviceStateTable>
</scpd>
`;
}
