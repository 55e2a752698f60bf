/** One exported type per name in all of `src`: a name that stands for two things has to be read with its path. */
import type { SourceFile } from "./files.ts";

const TYPE = /^export (?:declare )?(?:abstract )?(?:class|interface|type|enum) +([\w$]+)/gm;

/** One line for each second file that exports a type of the same name. A class and an interface of one file may share one. */
export function nameFaults(files: readonly SourceFile[]): string[] {
  const owners = new Map<string, string>();
  return files.flatMap(({ path, text }) => {
    const names = new Set([...text.matchAll(TYPE)].map(([, name]) => name!));
    return [...names].flatMap((name) => {
      const owner = owners.get(name);
      if (owner === undefined) owners.set(name, path);
      return owner === undefined ? [] : [`${path}: exports a type ${name}, as ${owner} does; name it by its domain`];
    });
  });
}
