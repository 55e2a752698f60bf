/** Finds a torrent's files under the names that another program gave them. */
import { plainName } from "../bytes/file-name.ts";
import type { FilePort } from "../ports.ts";
import { namedPaths, storedPaths } from "./placement.ts";
import type { TorrentLayout } from "./piece-store.ts";

/** Names in the directory `path`, keyed by what a transport file would call them; none if there is no such directory. */
async function listed(files: FilePort, path: string): Promise<Map<string, string>> {
  const names = new Map<string, string>();
  for (const name of await files.list(path).catch(() => [])) {
    const described = plainName(name).normalize("NFC");
    if (name === described || !names.has(described)) names.set(described, name);
  }
  return names;
}

/**
 * Paths of the torrent's files below `directory`, in order. A file whose name some file systems refuse (`a:b`,
 * `"x"`) is first looked for under the torrent's own name, since this file system may accept it; if it is not there, its
 * path is the one under which millrace stores it. Only names that a directory lists are used, so a torrent can neither
 * name a device (`con`) nor lead out of `directory`.
 */
export async function foundPaths(files: FilePort, layout: TorrentLayout, directory: string): Promise<string[]> {
  /** The names in each directory, keyed by what a transport file would call them. */
  const lists = new Map<string, Promise<ReadonlyMap<string, string>>>();
  const list = (path: string) => {
    let names = lists.get(path);
    if (names === undefined) lists.set(path, names = listed(files, path));
    return names;
  };
  const find = async (path: string): Promise<string | null> => {
    let found = directory;
    for (const component of path.split("/")) {
      const name = (await list(found)).get(component.normalize("NFC"));
      if (name === undefined) return null;
      found += `/${name}`;
    }
    return found.slice(directory.length + 1);
  };
  const stored = storedPaths(layout);
  const paths: string[] = [];
  for (const [unit, named] of namedPaths(layout).entries()) {
    const isOrdinary = named === stored[unit] && !named.includes("_");
    paths.push(isOrdinary ? named : await find(named) ?? stored[unit]!);
  }
  return paths;
}
