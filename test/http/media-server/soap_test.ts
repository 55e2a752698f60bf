import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { didl, type DidlEntry } from "../../../src/http/media-server/didl.ts";
import { parentOf, readObjectId, writeObjectId } from "../../../src/http/media-server/object-id.ts";
import { CONNECTION_MANAGER, CONTENT_DIRECTORY, serviceDescription } from "../../../src/http/media-server/services.ts";
import { readCall, soapFault, soapResult, UpnpError } from "../../../src/http/media-server/soap.ts";
import { elementsOf, readXml, textIn } from "../../../src/upnp/xml.ts";
import { seededBelow } from "../../support/random.ts";

const call = (body: string) =>
  `<?xml version="1.0"?>\n<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>${body}</s:Body></s:Envelope>`;

test("readCall() reads an action and its arguments with any prefixes", () => {
  const { action, arg } = readCall(
    call('<u:Browse xmlns:u="urn:x"><ObjectID>c:a%26b</ObjectID><Filter> * </Filter><u:Empty/></u:Browse>'),
  );
  assertEquals([action, arg("ObjectID"), arg("Filter"), arg("Empty"), arg("Missing")], [
    "Browse",
    "c:a%26b",
    "*",
    "",
    "",
  ]);
});

test("readCall() refuses with 401 what calls no action", () => {
  const entities =
    '<!DOCTYPE a [<!ENTITY x "y"><!ENTITY z "&x;&x;">]><Envelope><Body><Browse>&z;</Browse></Body></Envelope>';
  const deep = "<a>".repeat(5000);
  const many = call(`<Browse>${"<a/>".repeat(1100)}</Browse>`);
  for (
    const text of [many, "", "Browse", "<Body><Browse/></Body>", call(""), call("text"), "<Envelope/>", entities, deep]
  ) {
    assertEquals(assertThrows(() => readCall(text), UpnpError).errorCode, 401, text.slice(0, 80));
  }
  const below = seededBelow(3);
  const good = call('<u:Browse xmlns:u="urn:x"><ObjectID>0</ObjectID></u:Browse>');
  for (let round = 0; round < 2000; round++) {
    const at = below(good.length);
    const text = good.slice(0, at) + String.fromCharCode(below(128)) + good.slice(at + below(4));
    try {
      readCall(text);
    } catch (error) {
      assert(error instanceof UpnpError, text);
    }
  }
});

test("soapResult() and soapFault() are well-formed XML for any values", async () => {
  const result = readXml(await soapResult("urn:x", "Browse", { Result: "<a>\u0001&</a>", Count: 3 }).text());
  assertEquals([textIn(result, "Result"), textIn(result, "Count")], ["<a>\ufffd&</a>", "3"]);
  const fault = soapFault(new UpnpError(701, "No <such> object"));
  assertEquals(fault.status, 500);
  const root = readXml(await fault.text());
  assertEquals([textIn(root, "errorCode"), textIn(root, "errorDescription")], ["701", "No <such> object"]);
});

test("serviceDescription() lists each action's arguments with a variable that is there", () => {
  for (const service of [CONTENT_DIRECTORY, CONNECTION_MANAGER]) {
    const root = readXml(serviceDescription(service));
    const variables = [...elementsOf(root, "stateVariable")].map((variable) => textIn(variable, "name"));
    const related = [...elementsOf(root, "relatedStateVariable")].map(({ text }) => text);
    assert(related.length > 0 && related.every((name) => variables.includes(name)));
    assertEquals(new Set(variables).size, variables.length);
  }
});

test("didl() writes what control points read, and no character that XML forbids", () => {
  const media: DidlEntry = {
    ...{ kind: "media", id: "all/i1", parentId: "all", title: '<&>"\u0000\ud800', isLive: false, picture: "" },
    ...{ url: "http://h/x?a=1&b=2", sizeBytes: 376, durationMs: 5_025_678.4 },
  };
  const live: DidlEntry = {
    ...media,
    isLive: true,
    sizeBytes: null,
    durationMs: null,
    picture: "https://e.example/a.png?x&y",
  };
  const root = readXml(didl([{ kind: "container", id: "all", parentId: "0", title: "", childCount: 2 }, media, live]));
  const [container] = elementsOf(root, "container");
  assertEquals([container!.attributes["childCount"], textIn(container!, "title")], ["2", "?"]);
  const [first, second] = [...elementsOf(root, "item")];
  assertEquals([textIn(first!, "title"), textIn(first!, "res")], ['<&>"\ufffd\ufffd', "http://h/x?a=1&b=2"]);
  const [res] = elementsOf(first!, "res");
  assertEquals([res!.attributes["size"], res!.attributes["duration"]], ["376", "1:23:45.678"]);
  assertMatch(res!.attributes["protocolInfo"]!, /DLNA\.ORG_OP=11/);
  const [liveRes] = elementsOf(second!, "res");
  assertMatch(liveRes!.attributes["protocolInfo"]!, /DLNA\.ORG_OP=00/);
  assertEquals([textIn(second!, "class"), textIn(second!, "albumArtURI")], [
    "object.item.videoItem.videoBroadcast",
    "https://e.example/a.png?x&y",
  ]);
  assert(!didl([{ ...media, picture: "javascript:alert(1)" }]).includes("javascript"));
});

test("readObjectId() reads what writeObjectId() wrote, and nothing else", () => {
  const infohashHex = "0123456789abcdef0123456789abcdef01234567";
  const category = { kind: "category", name: "A/b & ü %41" } as const;
  const table = [
    [{ kind: "root" }, "-1"],
    [{ kind: "now" }, "0"],
    [{ kind: "playing", infohashHex, fileIndex: 3 }, "now"],
    [{ kind: "playing", infohashHex, fileIndex: null }, "now"],
    [{ kind: "recordings" }, "0"],
    [{ kind: "recording", recording: "0123456789abcdef" }, "recordings"],
    [{ kind: "list", list: { kind: "all" } }, "0"],
    [{ kind: "list", list: category }, "0"],
    [{ kind: "item", list: category, item: 7 }, "c:A%2Fb%20%26%20%C3%BC%20%2541"],
    [{ kind: "file", list: { kind: "favourites" }, item: 7, fileIndex: 2 }, "favourites/i7"],
  ] as const;
  for (const [id, parent] of table) {
    assertEquals(readObjectId(writeObjectId(id)), id);
    assertEquals(parentOf(id), parent);
  }
  const refused = [
    "",
    "1",
    "all/",
    "all/7",
    "all/i7/",
    "all/i7/f",
    "c",
    "c:%zz",
    "now/x",
    "all/i7/f1/f2",
    `c:${"x".repeat(9999)}`,
  ];
  for (const text of refused) assertEquals(readObjectId(text), null, text);
});
