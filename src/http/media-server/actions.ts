/** The actions of the media server's two services. */
import { protocolInfo } from "../../upnp/dlna.ts";
import { didl, MEDIA_TYPE } from "./didl.ts";
import { type EntryPage, type MediaLibrary, noSuchObject } from "./library.ts";
import { readObjectId } from "./object-id.ts";
import { readCriteria, SEARCHED_PROPERTIES } from "./search-criteria.ts";
import { CONTENT_DIRECTORY, type Service } from "./services.ts";
import { type SoapCall, UpnpError } from "./soap.ts";

/** Most entries of one answer: some 150 KB. Control points ask for the rest when they get fewer than the total. */
const MAX_PAGE_ENTRIES = 200;

/** Results by name, in order. */
export type Results = Readonly<Record<string, string | number>>;

/** Performs `call` of `service` and returns its results. Rejects with `UpnpError`, and as `MediaLibrary` does. */
export async function perform(
  service: Service,
  call: SoapCall,
  library: MediaLibrary,
  signal: AbortSignal,
): Promise<Results> {
  if (!Object.hasOwn(service.actions, call.action)) throw new UpnpError(401, "Invalid Action");
  if (service !== CONTENT_DIRECTORY) return connection(call);
  switch (call.action) {
    case "GetSearchCapabilities":
      return { SearchCaps: SEARCHED_PROPERTIES };
    case "GetSortCapabilities":
      // Sorting is not supported: entries always come in the library's order.
      return { SortCaps: "" };
    case "GetSystemUpdateID":
      return { Id: await library.version() };
    case "Search":
      return await listed(
        library,
        await library.search(
          objectOf(call.arg("ContainerID")),
          readCriteria(call.arg("SearchCriteria")),
          boundsOf(call),
        ),
      );
    default:
      return await browse(call, library, signal);
  }
}

async function browse(call: SoapCall, library: MediaLibrary, signal: AbortSignal): Promise<Results> {
  const id = objectOf(call.arg("ObjectID"));
  switch (call.arg("BrowseFlag")) {
    case "BrowseMetadata":
      return await listed(library, { total: 1, entries: [await library.entry(id, signal)] });
    case "BrowseDirectChildren":
      return await listed(library, await library.children(id, boundsOf(call), signal));
    default:
      throw new UpnpError(402, "Invalid Args");
  }
}

async function listed(library: MediaLibrary, { total, entries }: EntryPage): Promise<Results> {
  return {
    Result: didl(entries),
    NumberReturned: entries.length,
    TotalMatches: total,
    UpdateID: await library.version(),
  };
}

function objectOf(text: string) {
  const id = readObjectId(text);
  if (id === null) throw noSuchObject();
  return id;
}

/** The requested page; a count of 0 means all entries. */
function boundsOf(call: SoapCall): { readonly offset: number; readonly limit: number } {
  const [offset, count] = ["StartingIndex", "RequestedCount"].map((name) => {
    const text = call.arg(name);
    if (!/^\d{0,10}$/.test(text)) throw new UpnpError(402, "Invalid Args");
    return Number(text);
  });
  return { offset: offset!, limit: count === 0 ? MAX_PAGE_ENTRIES : Math.min(count!, MAX_PAGE_ENTRIES) };
}

/** The only connection of a server without PrepareForConnection (ConnectionManager:1, section 2.4.4). */
function connection(call: SoapCall): Results {
  const source = [true, false].map((hasRanges) => protocolInfo(MEDIA_TYPE, hasRanges)).join(",");
  switch (call.action) {
    case "GetProtocolInfo":
      return { Source: source, Sink: "" };
    case "GetCurrentConnectionIDs":
      return { ConnectionIDs: "0" };
    default:
      if (call.arg("ConnectionID") !== "0") throw new UpnpError(706, "Invalid connection reference");
      return {
        RcsID: -1,
        AVTransportID: -1,
        ProtocolInfo: "",
        PeerConnectionManager: "",
        PeerConnectionID: -1,
        Direction: "Output",
        Status: "OK",
      };
  }
}
