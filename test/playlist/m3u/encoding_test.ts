/** In which encodings lists are read. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { readM3u } from "../../../src/playlist/m3u/read.ts";

/** Titles of a list, and their bytes, separated by line ends, as iconv writes them. */
const TABLE: [encoding: string, titles: string[], hex: string][] = [
  ["gbk", ["中央电视台 综合", "湖南卫视"], "d6d0d1ebb5e7cad3cca820d7dbbacf0abafec4cfcec0cad3"],
  ["big5", ["公視 新聞", "民視新聞台"], "a4bdb5f820b773bb440aa5c1b5f8b773bb44a578"],
  ["shift_jis", ["テレビ東京 ニュース", "日本テレビ"], "8365838c8372938c8b9e20836a8385815b83580a93fa967b8365838c8372"],
  ["euc-kr", ["한국방송 뉴스", "문화방송"], "c7d1b1b9b9e6bcdb20b4babdba0ab9aec8adb9e6bcdb"],
  [
    "cp1250",
    ["Čeština Žluťoučký Łódź", "Nova Česká"],
    "c8659a74696e61208e6c759d6f75e86bfd20a3f3649f0a4e6f766120c865736be1",
  ],
  ["cp1251", ["Первый канал", "Культура"], "cfe5f0e2fbe920eae0ede0eb0acaf3ebfcf2f3f0e0"],
  ["cp1253", ["Ελληνική Τηλεόραση", "Σκάϊ"], "c5ebebe7ede9eade20d4e7ebe5fcf1e1f3e70ad3eadcfa"],
  [
    "cp1254",
    ["Türkçe Şehir Işığı", "Kanal D Türkiye"],
    "54fc726be76520de656869722049fefdf0fd0a4b616e616c20442054fc726b697965",
  ],
  ["cp1255", ["ערוץ ראשון", "קשת"], "f2f8e5f520f8e0f9e5ef0af7f9fa"],
  ["cp1256", ["القناة الأولى", "العربية"], "c7e1dee4c7c920c7e1c3e6e1ec0ac7e1dad1c8edc9"],
  [
    "iso8859-2",
    ["Žluťoučký Łódź", "Česká televize", "Příbram"],
    "ae6c75bb6f75e86bfd20a3f364bc0ac865736be12074656c6576697a650a50f8ed6272616d",
  ],
  ["koi8-r", ["Первый канал Россия", "Культура"], "f0c5d2d7d9ca20cbc1cec1cc20f2cfd3d3c9d10aebd5ccd8d4d5d2c1"],
  ["cp866", ["Первый канал", "Культура"], "8fa5e0a2eba920aaa0ada0ab0a8ae3abece2e3e0a0"],
  ["cp874", ["ช่อง สาม", "ไทยพีบีเอส"], "aae8cda720cad2c10ae4b7c2bed5bad5e0cdca"],
  [
    "cp1252",
    ["Télévision Ñandú", "España Años", "Canal Première"],
    "54e96ce9766973696f6e20d1616e64fa0a45737061f1612041f16f730a43616e616c205072656d69e87265",
  ],
];

const ascii = (text: string) => new TextEncoder().encode(text);
const fromHex = (hex: string) => Uint8Array.from(hex.match(/../g) ?? [], (byte) => parseInt(byte, 16));

/** A list whose titles have these bytes. */
function listOf(titles: Uint8Array, header = "#EXTM3U"): Uint8Array<ArrayBuffer> {
  const parts: number[] = [...ascii(`${header}\n#EXTINF:-1,Plain\nhttp://h/0\n`)];
  let title: number[] = [];
  for (const byte of [...titles, 10]) {
    if (byte !== 10) title.push(byte);
    else {
      parts.push(...ascii('#EXTINF:-1 tvg-id="x" group-title="G",'), ...title, ...ascii("\nhttp://h/1\n"));
      title = [];
    }
  }
  return Uint8Array.from(parts);
}

async function titlesOf(bytes: Uint8Array<ArrayBuffer>, chunkBytes = 1000): Promise<string[]> {
  const titles: string[] = [];
  let at = 0;
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= bytes.length) controller.close();
      else controller.enqueue(bytes.slice(at, at += chunkBytes));
    },
  });
  for await (const event of readM3u(stream)) if (event.kind === "entry") titles.push(event.entry.title);
  return titles;
}

test("readM3u() finds out the encoding of a short list", async () => {
  for (const [encoding, titles, hex] of TABLE) {
    for (const chunkBytes of [1, 1000]) {
      assertEquals(await titlesOf(listOf(fromHex(hex)), chunkBytes), ["Plain", ...titles], encoding);
    }
  }
});

test("readM3u() reads UTF-16 and UTF-32 of either byte order, with or without a mark", async () => {
  const text = "#EXTM3U\n#EXTINF:-1,Первый 🔥\nhttp://h/1\n";
  for (const size of [2, 4]) {
    for (const isLittle of [true, false]) {
      for (const mark of ["", "\uFEFF"]) {
        const units = size === 4
          ? [...(mark + text)].map((char) => char.codePointAt(0)!)
          : (mark + text).split("").map((char) => char.charCodeAt(0));
        const bytes = new Uint8Array(units.length * size);
        const view = new DataView(bytes.buffer);
        for (const [i, unit] of units.entries()) {
          if (size === 4) view.setUint32(4 * i, unit, isLittle);
          else view.setUint16(2 * i, unit, isLittle);
        }
        for (const chunkBytes of [3, 1000]) {
          assertEquals(await titlesOf(bytes, chunkBytes), ["Первый 🔥"], `${size} ${isLittle} ${mark !== ""}`);
        }
      }
    }
  }
});

test("readM3u() believes a list that says its encoding, unless it is UTF-8", async () => {
  const cp866 = fromHex("8ae3abeceee3e0a0");
  const stated = ["#EXTM3U charset=cp866", "#EXTM3U\n#EXTENC: IBM866", '#EXTM3U encoding="cp866"'];
  const [culture] = await titlesOf(listOf(cp866, stated[0])).then((titles) => titles.slice(1));
  for (const header of stated) assertEquals(await titlesOf(listOf(cp866, header)), ["Plain", culture], header);
  assertEquals(culture, new TextDecoder("ibm866").decode(cp866));
  assertEquals(await titlesOf(listOf(ascii("Télé"), "#EXTM3U charset=windows-1251")), ["Plain", "Télé"]);
  assertEquals(await titlesOf(listOf(ascii("Télé"), "#EXTM3U charset=nonsense")), ["Plain", "Télé"]);
});

test("readM3u() loses no more than the character when a byte of UTF-8 was cut off or put in", async () => {
  const first = ascii("Первый канал");
  const second = ascii("\nВторой канал");
  assertEquals(await titlesOf(listOf(Uint8Array.from([...first.slice(0, -1), ...second]))), [
    "Plain",
    "Первый кана\uFFFD",
    "Второй канал",
  ]);
  assertEquals(await titlesOf(listOf(Uint8Array.from([...ascii("Télé Première "), 0x92, 0x78]))), [
    "Plain",
    "Télé Première \uFFFDx",
  ]);
});

test("readM3u() decides by the first letters that are not ASCII, wherever they are, for the whole list", async () => {
  const plain = "#EXTINF:-1,Plain\nhttp://h/0\n".repeat(5000);
  const late = ascii(`#EXTM3U\n${plain}#EXTINF:-1,Télé Ñandú\nhttp://h/1\n`);
  const titles = await titlesOf(Uint8Array.from(late), 4096);
  assertEquals([titles.length, titles.at(-1)], [5001, "Télé Ñandú"]);
});
