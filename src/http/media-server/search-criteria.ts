/** Translates search criteria of control points (ContentDirectory:1, section 2.5.5) into a filter of the library. */
import type { CatalogueFilter } from "../../playlist/catalogue.ts";
import { UpnpError } from "./soap.ts";

/** Longest criteria read, characters: televisions send some hundred. */
const MAX_CRITERIA_CHARS = 1024;
/** Deepest nesting of parentheses. */
const MAX_DEPTH = 16;

/** UPnP class of broadcasts. */
export const LIVE_CLASS = "object.item.videoItem.videoBroadcast";
/** UPnP class of all other items. */
export const FILE_CLASS = "object.item.videoItem";

/** Properties that searches may name: `GetSearchCapabilities`. */
export const SEARCHED_PROPERTIES = "dc:title,upnp:class";

const YES: CatalogueFilter = { kind: "constant", value: true };
const NO: CatalogueFilter = { kind: "constant", value: false };

/** Parses criteria. Throws `UpnpError` 708 when they are malformed, too long or nested too deeply. */
export function readCriteria(text: string): CatalogueFilter {
  if (text.length > MAX_CRITERIA_CHARS) throw unsupported();
  if (text.trim() === "*") return YES;
  const reader = new Reader(text);
  const filter = reader.either(0);
  reader.end();
  return filter;
}

class Reader {
  readonly #words: readonly string[];
  #at = 0;

  constructor(text: string) {
    const words = text.match(/"(?:[^"\\]|\\.)*"|[()]|[^\s()"]+|"/g) ?? [];
    this.#words = words;
  }

  /** Parses terms joined by `or`, which binds less than `and`. */
  either(depth: number): CatalogueFilter {
    return this.#joined("or", "any", () => this.#joined("and", "all", () => this.#one(depth)));
  }

  end(): void {
    if (this.#at < this.#words.length) throw unsupported();
  }

  #joined(word: string, kind: "all" | "any", next: () => CatalogueFilter): CatalogueFilter {
    const of = [next()];
    while (this.#words[this.#at]?.toLowerCase() === word) {
      this.#at++;
      of.push(next());
    }
    return of.length === 1 ? of[0]! : { kind, of };
  }

  #one(depth: number): CatalogueFilter {
    const property = this.#next();
    if (property === "(") {
      if (depth >= MAX_DEPTH) throw unsupported();
      const inner = this.either(depth + 1);
      if (this.#next() !== ")") throw unsupported();
      return inner;
    }
    if (property === ")" || property.startsWith('"')) throw unsupported();
    const operator = this.#next().toLowerCase();
    const value = this.#next();
    if (operator === "exists") {
      if (!/^(?:true|false)$/i.test(value)) throw unsupported();
      const isThere = property === "dc:title" || property === "upnp:class" || property === "@id";
      return (value.toLowerCase() === "true") === isThere ? YES : NO;
    }
    if (!/^".*"$/s.test(value) || value.length < 2) throw unsupported();
    return related(property, operator, value.slice(1, -1).replace(/\\(.)/gs, "$1"));
  }

  #next(): string {
    const word = this.#words[this.#at++];
    if (word === undefined) throw unsupported();
    return word;
  }
}

/** The filter of one comparison. No item has a property that cannot be searched, so such a comparison finds nothing. */
function related(property: string, operator: string, text: string): CatalogueFilter {
  if (property === "dc:title") return titled(operator, text);
  if (property !== "upnp:class") return NO;
  const [live, file] = [LIVE_CLASS, FILE_CLASS].map((name) => isOfClass(name, operator, text));
  if (live === file) return live ? YES : NO;
  return { kind: "live", value: live! };
}

function titled(operator: string, text: string): CatalogueFilter {
  switch (operator) {
    case "contains":
    case "doesnotcontain":
      // Every title contains the empty text.
      if (text === "") return operator === "contains" ? YES : NO;
      return { kind: "title", test: "contains", text, negated: operator !== "contains" };
    case "=":
    case "!=":
      return { kind: "title", test: "is", text, negated: operator === "!=" };
    default:
      throw unsupported();
  }
}

function isOfClass(name: string, operator: string, text: string): boolean {
  switch (operator) {
    case "derivedfrom":
      return name === text || name.startsWith(`${text}.`);
    case "=":
      return name === text;
    case "!=":
      return name !== text;
    case "contains":
      return name.includes(text);
    case "doesnotcontain":
      return !name.includes(text);
    default:
      throw unsupported();
  }
}

function unsupported(): UpnpError {
  return new UpnpError(708, "Unsupported or invalid search criteria");
}
