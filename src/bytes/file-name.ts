/** What transport files do to names that no component of a path can have. */

/** `name` with separators and control characters (C0, DEL) replaced by `_`: "AC/DC" is a title, not two components. */
export function plainName(name: string): string {
  // deno-lint-ignore no-control-regex
  return name.replace(/[/\\\u0000-\u001f\u007f]/g, "_");
}
