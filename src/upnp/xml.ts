/**
 * Reading the XML of devices and control points: strangers' text. What one document costs is bounded, and documents are read
 * one at a time, so that a hundred devices that answer at once cost no more than one does.
 */
import { parseXml, XmlElement } from "@rgrove/parse-xml";
import { withSignal } from "../bytes/deadline.ts";
import { trimEndOf } from "../bytes/trim.ts";
import { socketTurn } from "../bytes/turn.ts";
import { abortError, MillraceError } from "../errors.ts";

/** Longest document, characters; descriptions have some thousand. */
const MAX_CHARS = 256 * 1024;
/**
 * Most characters that begin a tag or reference, or quote an attribute: each costs the parser up to 7 µs, whatever the
 * length of the document. A description of ten devices with ten services each has 1,500.
 */
const MAX_MARKS = 8192;
/** Elements around each other; the services of a device inside a device inside a device are 9 deep. */
const MAX_DEPTH = 32;

/** `<`, `&`, `"` and `'`. */
const MARKS: ReadonlySet<number> = new Set([0x3c, 0x26, 0x22, 0x27]);

/** The document that is being read, and those that wait. Callers bound how many: they have sent the requests. */
let reading: Promise<unknown> = Promise.resolve();

/**
 * Runs `read`, which reads one document, after all documents before it, and after timers and sockets had their turn. Rejects
 * as `read` throws, or with the signal's reason, which also saves the work.
 */
export function readInTurn<T>(read: () => T, signal: AbortSignal): Promise<T> {
  const done = reading.then(async () => {
    if (!signal.aborted) await socketTurn();
    if (signal.aborted) throw abortError(signal);
    return read();
  });
  reading = done.catch(() => {});
  return withSignal(done, signal);
}

/**
 * The root element. Throws `protocol_violation` for anything but XML, and for a document larger or deeper than any device's.
 * `maxMarks`: most characters that begin a tag or reference, or quote an attribute.
 */
export function readXml(text: string, maxMarks: number = MAX_MARKS): XmlElement {
  if (text.length > MAX_CHARS || marksIn(text) > maxMarks) throw notRead("a document with far too many elements");
  let root: XmlElement | null;
  try {
    // The parser takes quadratic time for carriage returns. Some devices end their documents with zero bytes, or begin them
    // with white space.
    const lines = text.includes("\r") ? text.replaceAll("\r\n", "\n").replaceAll("\r", "\n") : text;
    root = parseXml(trimEndOf(lines, "\0").trimStart()).root;
  } catch (cause) {
    throw notRead("something other than XML", cause);
  }
  if (root === null) throw notRead("an empty document");
  let level: XmlElement[] = [root];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) throw notRead("elements nested far too deep");
    level = level.flatMap(childrenOf);
  }
  return root;
}

/** The elements directly inside `parent`, in their order. */
export function childrenOf(parent: XmlElement): XmlElement[] {
  return parent.children.filter((child) => child instanceof XmlElement);
}

/** The element's name without its prefix. */
export function localName({ name }: XmlElement): string {
  return name.slice(name.indexOf(":") + 1);
}

/** Elements inside `parent` whose name without its prefix is `name`, at any depth, in their order. Takes linear time. */
export function* elementsOf(parent: XmlElement, name: string): Generator<XmlElement> {
  const rest = childrenOf(parent).reverse();
  for (let element = rest.pop(); element !== undefined; element = rest.pop()) {
    if (localName(element) === name) yield element;
    for (const child of childrenOf(element).reverse()) rest.push(child);
  }
}

/** Text of the first such element, trimmed; empty when there is none. */
export function textIn(parent: XmlElement, name: string): string {
  for (const element of elementsOf(parent, name)) return element.text.trim();
  return "";
}

/**
 * Text of the first element directly inside `parent`, trimmed; empty when there is none. For parts of many elements, which
 * may be nested: searching each at any depth would take quadratic time.
 */
export function childText(parent: XmlElement, name: string): string {
  return childrenOf(parent).find((child) => localName(child) === name)?.text.trim() ?? "";
}

function marksIn(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i++) if (MARKS.has(text.charCodeAt(i))) count++;
  return count;
}

function notRead(what: string, cause?: unknown): MillraceError {
  return new MillraceError("protocol_violation", `the device sent ${what}`, { cause });
}
