/**
 * SVG without what could act: scripts, handlers, animation, foreign content, other documents. What is known to be harmless
 * is written anew; everything else is left out, so that nothing passes because it was not thought of.
 */

/** Elements that only draw; `a` becomes a group. */
const ELEMENTS: ReadonlySet<string> = new Set(
  ("svg g a defs symbol use title desc path rect circle ellipse line polyline polygon text tspan textPath image style " +
    "linearGradient radialGradient stop pattern clipPath mask marker switch filter feBlend feColorMatrix " +
    "feComponentTransfer feComposite feFlood feFuncA feFuncB feFuncG feFuncR feGaussianBlur feMerge feMergeNode feOffset " +
    "feMorphology feTurbulence feDropShadow").split(" "),
);
/** Bounds far above what logos have. */
const MAX_ELEMENTS = 20_000;
const MAX_DEPTH = 200;

const NAMESPACE = "http://www.w3.org/2000/svg";
const XLINK = "http://www.w3.org/1999/xlink";
const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

const SKIPPED = /<!--[\s\S]*?-->|<\?[\s\S]*?\?>|<!DOCTYPE[^[>]*(?:\[[^\]<]*\]\s*)?>/y;
const TEXT = /[^<]+/y;
const CDATA = /<!\[CDATA\[([\s\S]*?)\]\]>/y;
const END = /<\/([A-Za-z_][\w.:-]*)\s*>/y;
const START = /<([A-Za-z_][\w.:-]*)((?:\s+[A-Za-z_][\w.:-]*\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>/y;
const ATTRIBUTE = /([A-Za-z_][\w.:-]*)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;
const ATTRIBUTE_NAME = /^(?!on|xmlns)(?:[a-z][A-Za-z0-9-]{0,40}|xlink:href|xml:space)$/;
const LOCAL_LINK = /^#[\w.:-]{1,200}$/;
const INLINE_PICTURE = /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]*$/;

/** `bytes` as harmless SVG; null when they are no SVG, or none that is well-formed. */
export function neutralSvg(bytes: Uint8Array): Uint8Array<ArrayBuffer> | null {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
  const written = rewrite(text);
  return written === null ? null : new TextEncoder().encode(written);
}

function rewrite(text: string): string | null {
  const open: string[] = [];
  let out = "";
  let elements = 0;
  let at = 0;
  /** Depth of the element that is left out with all that it holds; null outside of one. */
  let leftOut: number | null = null;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match !== null) at = pattern.lastIndex;
    return match;
  };
  while (at < text.length) {
    let match: RegExpExecArray | null;
    if (take(SKIPPED) !== null) continue;
    if ((match = take(TEXT)) !== null || (match = take(CDATA)) !== null) {
      const plain = match[1] ?? decoded(match[0]);
      if (open.length === 0 && plain.trim() !== "") return null;
      if (open.length > 0 && leftOut === null) out += open.at(-1) === "style" ? harmlessStyle(plain) : encoded(plain);
    } else if ((match = take(END)) !== null) {
      if (open.pop() !== match[1]) return null;
      if (leftOut === null) out += `</${match[1] === "a" ? "g" : match[1]}>`;
      else if (leftOut === open.length) leftOut = null;
    } else if ((match = take(START)) !== null) {
      const [, name, attributes, slash] = match as unknown as [string, string, string, string];
      if (++elements > MAX_ELEMENTS || open.length >= MAX_DEPTH) return null;
      if (open.length === 0 && (name !== "svg" || out !== "")) return null;
      if (leftOut === null && !ELEMENTS.has(name)) leftOut = open.length;
      if (leftOut === null) {
        out +=
          `<${name === "a" ? "g" : name}${open.length === 0 ? ` xmlns="${NAMESPACE}" xmlns:xlink="${XLINK}"` : ""}` +
          harmlessAttributes(attributes) + (slash === "" ? ">" : "/>");
      }
      if (slash === "") open.push(name);
      else if (leftOut === open.length) leftOut = null;
    } else return null;
  }
  return open.length === 0 && out !== "" ? out : null;
}

function harmlessAttributes(text: string): string {
  let out = "";
  for (const [, name, double, single] of text.matchAll(ATTRIBUTE)) {
    const value = decoded(double ?? single ?? "");
    if (!ATTRIBUTE_NAME.test(name!) || !isHarmless(name!, value)) continue;
    out += ` ${name}="${encoded(value)}"`;
  }
  return out;
}

function isHarmless(name: string, value: string): boolean {
  if (name === "href" || name === "xlink:href") return LOCAL_LINK.test(value) || INLINE_PICTURE.test(value);
  return !namesAnother(value);
}

/** Whether a value of a property leads out of the document. Escapes could hide that, so they count, too. */
function namesAnother(value: string): boolean {
  const rest = value.replace(/url\(\s*(["']?)#[\w.:-]{1,200}\1\s*\)/gi, "");
  return /url\s*\(|image-set|expression|@import|javascript:|\\/i.test(rest);
}

function harmlessStyle(text: string): string {
  return namesAnother(text) ? "" : encoded(text);
}

/** Text with its references (XML 1.0, section 4.1) resolved; those to entities of its own stay as they are written. */
function decoded(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,4}));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES[name] ?? whole;
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : "";
  });
}

function encoded(text: string): string {
  // deno-lint-ignore no-control-regex
  return text.replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, "").replaceAll("&", "&amp;").replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
