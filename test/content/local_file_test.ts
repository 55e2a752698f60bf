import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { withLocalFile } from "../../src/content/local-file.ts";
import { MillraceError } from "../../src/errors.ts";

const bytes = new Uint8Array([1, 2, 3]);

test("withLocalFile() reads the file that an address names, whether its name is encoded or not", async () => {
  const { files } = await loadPorts();
  const directory = await mkdtemp(join(tmpdir(), "millrace-local-"));
  try {
    for (const name of ["a.torrent", "Some film #1.torrent", "100%.torrent", "фильм.torrent", "a%20b.torrent"]) {
      await writeFile(join(directory, name), bytes);
      const encoded = [directory, encodeURIComponent(name)].join("/");
      for (const path of [join(directory, name), encoded]) {
        for (const start of ["file://", "file://localhost", "FILE://", "file:"]) {
          const read = await withLocalFile(files, { kind: "url", url: `${start}${path}` }, true);
          assertEquals(read, { kind: "transport_file", bytes }, `${start}${path}`);
        }
      }
    }
    const other = { kind: "url", url: "http://h/file:///a.torrent" } as const;
    assertEquals(await withLocalFile(files, other, false), other);
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("withLocalFile() refuses other machines' callers, and says the same of all that it cannot read", async () => {
  const { files } = await loadPorts();
  const directory = await mkdtemp(join(tmpdir(), "millrace-local-"));
  const refusal = async (url: string, mayRead = true) => {
    const error = await assertRejects(() => withLocalFile(files, { kind: "url", url }, mayRead), MillraceError);
    return [error.code, error.message];
  };
  try {
    await writeFile(join(directory, "a.torrent"), bytes);
    await writeFile(join(directory, "empty"), "");
    await mkdir(join(directory, "folder"));
    assertEquals((await refusal(`file://${directory}/a.torrent`, false))[0], "denied");
    const missing = await refusal(`file://${directory}/missing`);
    assertEquals(missing[0], "not_found");
    for (const path of [`${directory}/folder`, `${directory}/empty`, "/dev/zero", `${directory}/a.torrent/x`]) {
      assertEquals(await refusal(`file://${path}`), missing, path);
    }
    for (const url of ["file://", "file:///", "file://server/share/a.torrent", "file:////server/a", "file:///a%00b"]) {
      assertEquals((await refusal(url))[0], "invalid_argument", url);
    }
  } finally {
    await rm(directory, { recursive: true });
  }
});
