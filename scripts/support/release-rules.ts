/** What must agree before a release. */

/** Files, JSON with a `version`, that name another version than `version`. */
export function versionFaults(version: string, files: Readonly<Record<string, string>>): string[] {
  return Object.entries(files).flatMap(([file, text]) => {
    const named = (JSON.parse(text) as { version?: unknown }).version;
    return named === version ? [] : [`${file} says version ${String(named)}, src/version.ts ${version}`];
  });
}

/** What the list of changes says of a version, without its heading; null when that is nothing. */
export function changesOf(version: string, changes: string): string | null {
  const section = changes.split(/^## /m).find((part) => part.split(/[\s,]/, 1)[0] === version);
  const text = section?.slice(section.indexOf("\n") + 1).trim();
  return text === undefined || text === "" ? null : `${text}\n`;
}
