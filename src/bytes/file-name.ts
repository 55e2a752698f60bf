/** Makes any name fit for a component of a path, as transport files do. */

/** `name` with separators and control characters (C0, DEL) replaced by `_`: "AC/DC" is a title, not two components. */
export function plainName(name: string): string {
  // deno-lint-ignore no-control-regex
  return name.replace(/[/\\\u0000-\u001f\u007f]/g, "_");
}
