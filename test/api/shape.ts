/** Shapes written by hand, so that an error in the registry's schemas cannot hide. */
import { assert, assertEquals } from "@std/assert";

/**
 * A type's name, a literal in JSON after `=`, words after `|` of which it is one, a list of one shape, or all fields of an
 * object; `?` at the end of a name allows null.
 */
export type Shape = string | readonly [Shape] | { readonly [field: string]: Shape };

/** Fails unless `value` has `shape` and no other fields; `where` says which value it is. */
export function assertShape(value: unknown, shape: Shape, where: string): void {
  if (Array.isArray(shape)) {
    assert(Array.isArray(value), `${where}: a list`);
    value.forEach((item, i) => assertShape(item, shape[0], `${where}[${i}]`));
  } else if (typeof shape === "object") {
    assert(typeof value === "object" && value !== null, `${where}: an object`);
    assertEquals(Object.keys(value).sort(), Object.keys(shape).sort(), where);
    for (const [name, inner] of Object.entries(shape)) {
      assertShape((value as Record<string, unknown>)[name], inner, `${where}.${name}`);
    }
  } else if (shape.startsWith("=")) assertEquals(value, JSON.parse(shape.slice(1)), where);
  else if (shape.startsWith("|")) assert(shape.slice(1).split("|").includes(value as string), `${where}: ${value}`);
  else if (shape.endsWith("?") && value === null) return;
  else if (shape.startsWith("integer")) assert(Number.isSafeInteger(value), `${where}: an integer`);
  else assertEquals(typeof value, shape.replace("?", ""), where);
}
