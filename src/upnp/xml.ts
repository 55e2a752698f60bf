/** Reading the XML of devices: strangers' text, bounded before it comes here. */
import { parseXml, XmlElement } from "@rgrove/parse-xml";
import { trimEndOf } from "../bytes/trim.ts";
import { MillraceError } from "../errors.ts";

/** The root element. Throws `protocol_violation` for anything but XML. */
export function readXml(text: string): XmlElement {
  try {
    // Some devices end their documents with zero bytes, or begin them with white space.
    const { root } = parseXml(trimEndOf(text, "\0").trimStart());
    if (root !== null) return root;
  } catch (cause) {
    throw new MillraceError("protocol_violation", "the device sent something other than XML", { cause });
  }
  throw new MillraceError("protocol_violation", "the device sent an empty document");
}

/** Elements inside `parent` whose name without its prefix is `name`, at any depth, in their order. */
export function* elementsOf(parent: XmlElement, name: string): Generator<XmlElement> {
  for (const child of parent.children) {
    if (!(child instanceof XmlElement)) continue;
    if (child.name.slice(child.name.indexOf(":") + 1) === name) yield child;
    yield* elementsOf(child, name);
  }
}

/** Text of the first such element, trimmed; empty when there is none. */
export function textIn(parent: XmlElement, name: string): string {
  for (const element of elementsOf(parent, name)) return element.text.trim();
  return "";
}
