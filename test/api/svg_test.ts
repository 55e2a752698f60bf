import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { neutralSvg } from "../../src/http/api/svg.ts";
import { seededBelow } from "../support/random.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
function neutral(text: string): string | null {
  const svg = neutralSvg(bytes(text));
  return svg === null ? null : new TextDecoder().decode(svg).replace(/^<svg xmlns="[^"]*" xmlns:xlink="[^"]*"/, "<svg");
}

test("neutralSvg() keeps what draws", () => {
  const drawing =
    '<svg viewBox="0 0 9 9" width="9"><defs><linearGradient id="a"><stop offset="0"/></linearGradient></defs>' +
    '<g style="fill:url(#a)"><path d="M0 0L9 9" fill="#f00"/><use xlink:href="#a"/><text x="1">a &amp; b</text></g>' +
    '<image href="data:image/png;base64,AAAA"/><style>.a{fill:#fff}</style></svg>';
  assertEquals(neutral(drawing), drawing);
  assertEquals(
    neutral(`\uFEFF<?xml version="1.0"?>\n<!DOCTYPE svg PUBLIC "-//W3C" "http://x">\n<!-- x -->\n${drawing}\n`),
    drawing,
  );
  assertEquals(neutral("<svg><a href='javascript:x'><path d='M0'/></a></svg>"), '<svg><g><path d="M0"/></g></svg>');
  assertEquals(neutral("<svg><style><![CDATA[.a{fill:red}]]></style></svg>"), "<svg><style>.a{fill:red}</style></svg>");
});

test("neutralSvg() leaves out whatever could act or lead elsewhere", () => {
  const parts = [
    "<script>alert(1)</script>",
    "<SCRIPT>alert(1)</SCRIPT>",
    "<svg:script>alert(1)</svg:script>",
    "<script/>",
    "<foreignObject><body><script>x</script></body></foreignObject>",
    "<animate attributeName='href' to='javascript:x'/>",
    "<set attributeName='onload' to='x'/>",
    "<iframe src='http://x'/>",
    "<metadata><rdf:RDF/></metadata>",
    "<style>@import 'http://x';</style>",
    "<style>.a{fill:url(http://x)}</style>",
    "<style>.a{fill:u\\72l(http://x)}</style>",
  ];
  for (const part of parts) {
    const written = neutral(`<svg>${part}<path d="M0"/></svg>`)!;
    assertMatch(written, /^<svg>(<style><\/style>)?<path d="M0"\/><\/svg>$/, part);
  }
  const attributes = [
    "onload='x()'",
    "onClick='x()'",
    "href='javascript:x'",
    "xlink:href='java&#115;cript:x'",
    "href='http://x/y.svg#a'",
    "href='data:image/svg+xml;base64,AAAA'",
    "href='data:text/html,x'",
    "style='fill:url(http://x)'",
    "style='fill:u&#114;l(//x)'",
    "fill='url(//x#a)'",
    "filter='URL( &quot;http://x&quot; )'",
    "xml:base='http://x'",
    "xmlns='http://www.w3.org/1999/xhtml'",
    "xmlns:x='y'",
    "ev:event='load'",
  ];
  for (const attribute of attributes) {
    assertEquals(neutral(`<svg><use ${attribute} x="1"/></svg>`), '<svg><use x="1"/></svg>', attribute);
  }
  assertEquals(neutral("<svg onload='x()' xmlns='http://www.w3.org/1999/xhtml'/>"), "<svg/>");
});

test("neutralSvg() answers null for what is no SVG, or not well-formed", () => {
  const table = [
    "",
    "text",
    "<html/>",
    "<svg>",
    "<svg></g></svg>",
    "</svg>",
    "<svg/><svg/>",
    "text<svg/>",
    "<svg a=b/>",
    "<svg><path d='<'/></svg>",
    '<!DOCTYPE svg [<!ENTITY a "b">]><svg>&a;</svg>',
    `${"<g>".repeat(300)}`,
    `<svg>${"<g>".repeat(300)}${"</g>".repeat(300)}</svg>`,
    `<svg>${"<g/>".repeat(30_000)}</svg>`,
    "<svg",
    "<svg><!-- ",
  ];
  for (const text of table) assertEquals(neutral(text), null, text.slice(0, 60));
  assertEquals(neutralSvg(Uint8Array.of(0xff, 0xfe, 0x3c)), null);
});

test("neutralSvg() never lets an active part through, and never hangs", () => {
  const random = seededBelow(11);
  const pieces = [
    "<svg>",
    "</svg>",
    "<script>",
    "</script>",
    "<g ",
    "onload",
    "=",
    '"',
    "'",
    ">",
    "/>",
    "<",
    "&#",
    "115;",
    "x",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "href",
    "javascript:",
    "style",
    "url(",
    ")",
    "#a",
    " ",
    "<?",
    "?>",
    "<!DOCTYPE",
    "[",
    "]",
  ];
  for (let round = 0; round < 5000; round++) {
    let text = "<svg>";
    for (let i = random(30); i > 0; i--) text += pieces[random(pieces.length)];
    const written = neutral(`${text}</svg>`) ?? "";
    for (const tag of written.matchAll(/<[^>]*>/g)) {
      assert(!/script|onload|href="j|url\((?!#)/i.test(tag[0]), `${text} became ${written}`);
    }
  }
  const started = performance.now();
  neutralSvg(bytes(`<svg ${"a='b' ".repeat(100_000)}`));
  neutralSvg(bytes(`<svg>${"<!--".repeat(200_000)}`));
  neutralSvg(bytes(`<svg>${"<!DOCTYPE [".repeat(50_000)}`));
  assert(performance.now() - started < 2000);
});
