/** The folder of `.strm` files: what is in it, and whose files stay. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { MillraceError } from "../../../src/errors.ts";
import { StrmFolder } from "../../../src/http/fronts/strm/folder.ts";
import { safeName } from "../../../src/http/fronts/strm/names.ts";
import type { StrmLibrary } from "../../../src/http/fronts/strm/wanted.ts";
import { FrontStates } from "../../../src/http/fronts/states.ts";
import { MemoryFiles } from "../../storage/memory-files.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { until } from "../../support/until.ts";

const DIR = "/media";
const HASH = "a".repeat(40);
const log = { log: () => {}, child: () => log };

interface Item {
  readonly id: number;
  readonly title: string;
  readonly isSeries?: boolean;
}

/** A library in the test's hands. */
class TestLibrary {
  items: Item[];
  version = 0;
  /** Whether the description of all torrents is here. */
  isKnown = true;
  /** How often everything was read. */
  reads = 0;

  constructor(...items: Item[]) {
    this.items = items;
  }

  change(...items: Item[]): void {
    this.items = items;
    this.version++;
  }

  get parts(): StrmLibrary {
    const files = ["Show S01E02.mkv", "Other.mkv", "note.txt"].map((name, index) => {
      return { index, name, path: name, sizeBytes: 1, offset: index, padding: false };
    });
    return {
      catalogue: {
        version: () => Promise.resolve(this.version),
        items: ({ filter, offset, limit }: { filter: { of: string }; offset: number; limit: number }) => {
          this.reads++;
          const all = this.items.filter(({ isSeries = false }) => isSeries === (filter.of === "series"));
          return Promise.resolve({ total: all.length, entries: all.slice(offset, offset + limit) });
        },
      },
      channels: {
        members: ({ item }: { item: number }) => Promise.resolve([{ id: item, selector: ["infohash", HASH] }]),
      },
      content: { known: () => Promise.resolve(this.isKnown ? { infohashHex: HASH, files } : null) },
    } as unknown as StrmLibrary;
  }
}

/** A folder that follows `library` on a disk and a clock of the test's own. */
function folderOf(library: TestLibrary, files = new MemoryFiles(new FakeClock())) {
  const clock = new FakeClock();
  const states = new FrontStates({ files, stateDir: "/state", clock, log });
  const keys = () => Promise.resolve((kind: string, value: string) => Promise.resolve(`${kind}-${value.slice(0, 4)}`));
  const folder = new StrmFolder({ directory: DIR, files, library: library.parts, states, keys, clock, log });
  const paths = () =>
    [...files.nodes.keys()].filter((path) => path.startsWith(`${DIR}/`)).map((path) => path.slice(DIR.length + 1))
      .sort();
  const textOf = (path: string) => new TextDecoder().decode(files.nodes.get(`${DIR}/${path}`)?.bytes);
  const put = (path: string, text: string) => files.writeFile(`${DIR}/${path}`, new TextEncoder().encode(text));
  /** Resolves when everything was read once more and written. */
  const followed = async () => {
    const before = library.reads;
    await clock.advanceAsync(5000);
    await until("the library is read", () => library.reads >= before + 2);
    await clock.advanceAsync(1000);
  };
  const close = async () => {
    await folder.close();
    await states.close();
  };
  return { folder, files, clock, paths, textOf, put, followed, close };
}

test("StrmFolder() has a file for each film and episode, and follows the library", async () => {
  const library = new TestLibrary({ id: 1, title: "Film" }, { id: 2, title: "FILM" }, {
    ...{ id: 3, title: "A/B: Show?", isSeries: true },
  });
  const { folder, paths, textOf, followed, close } = folderOf(library);
  folder.start("http://tv:6878");
  const season = "Series/A_B_ Show_/Season 01";
  const all = [
    "Films/FILM [2].strm",
    "Films/Film.strm",
    `${season}/A_B_ Show_ S01E01.strm`,
    `${season}/Show S01E02.strm`,
  ];
  await until("the files are there", () => paths().length === all.length);
  assertEquals(paths(), all);
  assertEquals(textOf("Films/Film.strm"), "http://tv:6878/engine/getfile?item=1&key=item-1\n");
  assertEquals(
    textOf(`${season}/Show S01E02.strm`),
    `http://tv:6878/engine/getfile?infohash=${HASH}&_idx=0&key=infohash-aaaa\n`,
  );
  library.change({ id: 2, title: "FILM" });
  await followed();
  await until("the others are gone", () => paths().length === 1);
  assertEquals(paths(), ["Films/FILM.strm"]);
  await close();
});

test("StrmFolder() leaves files of others alone, and its own that somebody changed", async () => {
  const library = new TestLibrary({ id: 1, title: "One" }, { id: 2, title: "Two" }, { id: 3, title: "Three" });
  const files = new MemoryFiles(new FakeClock());
  const first = folderOf(library, files);
  await first.put("Films/One.strm", "mine");
  await first.put("Films/list.nfo", "notes");
  first.folder.start("http://tv");
  await until("the files are there", () => first.paths().length === 4);
  assertEquals(first.textOf("Films/One.strm"), "mine");
  await first.put("Films/Three.strm", "changed");
  await first.close();

  // The next run knows which files are its own.
  library.change();
  const second = folderOf(library, files);
  second.folder.start("http://tv");
  await until("its own file is gone", () => second.paths().length === 3);
  assertEquals(second.paths(), ["Films/One.strm", "Films/Three.strm", "Films/list.nfo"]);
  await second.close();
});

test("StrmFolder() removes the folders that it leaves empty, and reads an unchanged library once in ten minutes", async () => {
  const library = new TestLibrary({ id: 3, title: "Show", isSeries: true });
  library.isKnown = false;
  const { folder, files, clock, paths, followed, close } = folderOf(library);
  folder.start("http://tv");
  await until("the library is read", () => library.reads === 2);
  await clock.advanceAsync(570_000);
  assertEquals(library.reads, 2);
  library.isKnown = true;
  await clock.advanceAsync(60_000);
  await until("the description is known", () => paths().length === 2);
  library.change();
  await followed();
  await until("the files are gone", () => paths().length === 0);
  await until("the folder is gone", () => !files.directories.has(`${DIR}/Series/Show`));
  assert(files.directories.has(`${DIR}/Series`));
  await close();
});

test("StrmFolder() writes the other files when one cannot be written, and tries that again", async () => {
  const library = new TestLibrary({ id: 1, title: "One" }, { id: 2, title: "Two" });
  const { folder, files, paths, followed, close } = folderOf(library);
  files.hook = (operation, path) => {
    if (operation === "replace" && path.endsWith("One.strm")) throw new MillraceError("io", "it cannot be written");
  };
  folder.start("http://tv");
  await until("the other file is there", () => paths().length === 1);
  assertEquals(paths(), ["Films/Two.strm"]);
  files.hook = () => {};
  library.change(...library.items);
  await followed();
  await until("both are there", () => paths().length === 2);
  await close();
});

test("safeName() gives names that every system takes", () => {
  const cases = [
    ['A/B\\C:D*E?F"G<H>I|J', "A_B_C_D_E_F_G_H_I_J"],
    ["..", "_"],
    ["../../etc", "__.._etc"],
    [".hidden", "_hidden"],
    ["Ends. . ", "Ends"],
    ["", "_"],
    ["con", "_con"],
    ["Com1.old", "_Com1.old"],
    ["a\u0000b\nc", "a_b_c"],
    ["e\u0301", "é"],
  ] as const;
  for (const [title, name] of cases) assertEquals(safeName(title), name, title);
  const long = safeName(`x${"é".repeat(300)}`);
  assertMatch(long, /^xé+$/);
  assert(new TextEncoder().encode(long).length <= 180);
});
