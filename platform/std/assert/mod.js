// @ts-self-types="./mod.d.ts"
// Offline stand-in for jsr:@std/assert: only what the tests use, with the same names and semantics.
// Removing "links" from deno.json brings the real package back.

/** Thrown by every assertion here; `cause` is kept when given. */
export class AssertionError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = "AssertionError";
  }
}

function show(value) {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "bigint") return `${value}n`;
  if (value instanceof Uint8Array) {
    const head = Array.from(value.subarray(0, 64), (b) => b.toString(16).padStart(2, "0")).join("");
    return `Uint8Array(${value.length}) ${head}${value.length > 64 ? "…" : ""}`;
  }
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  if (typeof value === "object" && value !== null) {
    try {
      const text = JSON.stringify(
        value,
        (_k, v) => typeof v === "bigint" ? `${v}n` : v instanceof Map ? [...v] : v instanceof Set ? [...v] : v,
        1,
      );
      return text.length > 2000 ? `${text.slice(0, 2000)}…` : text;
    } catch {
      return String(value);
    }
  }
  return String(value);
}

function fail(what, msg) {
  throw new AssertionError(msg ? `${what}: ${msg}` : what);
}

/** Deep equality as @std/assert defines it: Object.is for primitives, own enumerable keys, same prototype constructors. */
export function equal(a, b, seen = new Map()) {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (a.constructor !== b.constructor && a.constructor && b.constructor) {
    if (!(a instanceof Uint8Array && b instanceof Uint8Array)) return false;
  }
  if (a instanceof Date) return Object.is(a.getTime(), b.getTime());
  if (a instanceof RegExp || a instanceof URL) return String(a) === String(b);
  if (a instanceof Error && (a.message !== b.message || a.name !== b.name)) return false;
  if (seen.get(a) === b) return true;
  seen.set(a, b);
  if (ArrayBuffer.isView(a) && "length" in a) {
    if (a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (!Object.is(a[i], b[i])) return false;
    return true;
  }
  if (a instanceof Set) {
    if (a.size !== b.size) return false;
    for (const x of a) if (!b.has(x) && ![...b].some((y) => equal(x, y, seen))) return false;
    return true;
  }
  if (a instanceof Map) {
    if (a.size !== b.size) return false;
    for (const [k, v] of a) {
      if (b.has(k) ? !equal(v, b.get(k), seen) : ![...b].some(([k2, v2]) => equal(k, k2, seen) && equal(v, v2, seen))) {
        return false;
      }
    }
    return true;
  }
  const keys = Reflect.ownKeys(a).filter((k) => Object.prototype.propertyIsEnumerable.call(a, k));
  const other = Reflect.ownKeys(b).filter((k) => Object.prototype.propertyIsEnumerable.call(b, k));
  if (keys.length !== other.length) return false;
  return keys.every((k) => Object.hasOwn(b, k) && equal(a[k], b[k], seen));
}

export function assert(expr, msg = "") {
  if (!expr) throw new AssertionError(msg);
}
export function assertFalse(expr, msg) {
  if (expr) fail("Expected a falsy value", msg);
}
export function assertEquals(actual, expected, msg) {
  if (!equal(actual, expected)) {
    fail(`Values are not equal\n  actual:   ${show(actual)}\n  expected: ${show(expected)}`, msg);
  }
}
export function assertNotEquals(actual, expected, msg) {
  if (equal(actual, expected)) fail(`Expected values to differ: ${show(actual)}`, msg);
}
export function assertStrictEquals(actual, expected, msg) {
  if (!Object.is(actual, expected)) {
    fail(`Values are not strictly equal\n  actual:   ${show(actual)}\n  expected: ${show(expected)}`, msg);
  }
}
export function assertExists(actual, msg) {
  if (actual === undefined || actual === null) fail(`Expected a value, got ${actual}`, msg);
}
export function assertStringIncludes(actual, expected, msg) {
  if (!actual.includes(expected)) fail(`Expected ${show(actual)} to contain ${show(expected)}`, msg);
}
export function assertMatch(actual, expected, msg) {
  if (!expected.test(actual)) fail(`Expected ${show(actual)} to match ${expected}`, msg);
}
export function assertNotMatch(actual, expected, msg) {
  if (expected.test(actual)) fail(`Expected ${show(actual)} not to match ${expected}`, msg);
}
export function assertGreater(actual, expected, msg) {
  if (!(actual > expected)) fail(`Expected ${show(actual)} > ${show(expected)}`, msg);
}
export function assertGreaterOrEqual(actual, expected, msg) {
  if (!(actual >= expected)) fail(`Expected ${show(actual)} >= ${show(expected)}`, msg);
}
export function assertLess(actual, expected, msg) {
  if (!(actual < expected)) fail(`Expected ${show(actual)} < ${show(expected)}`, msg);
}
export function assertLessOrEqual(actual, expected, msg) {
  if (!(actual <= expected)) fail(`Expected ${show(actual)} <= ${show(expected)}`, msg);
}
export function assertAlmostEquals(actual, expected, tolerance, msg) {
  if (Object.is(actual, expected)) return;
  const limit = tolerance ?? Math.max(Math.abs(expected) * 1e-7, Number.EPSILON);
  if (!(Math.abs(actual - expected) <= limit)) fail(`Expected ${actual} to be within ${limit} of ${expected}`, msg);
}
export function assertArrayIncludes(actual, expected, msg) {
  const missing = [...expected].filter((e) => ![...actual].some((a) => equal(a, e)));
  if (missing.length) fail(`Expected ${show(actual)} to include ${show(missing)}`, msg);
}
export function assertInstanceOf(actual, ctor, msg) {
  if (!(actual instanceof ctor)) fail(`Expected an instance of ${ctor.name}, got ${show(actual)}`, msg);
}
export function assertObjectMatch(actual, expected, msg) {
  const matches = (a, e) => {
    if (typeof e !== "object" || e === null || Array.isArray(e) || ArrayBuffer.isView(e)) return equal(a, e);
    return typeof a === "object" && a !== null && Object.keys(e).every((k) => k in a && matches(a[k], e[k]));
  };
  if (!matches(actual, expected)) fail(`Expected ${show(actual)} to match ${show(expected)}`, msg);
}

function checkError(error, ErrorClass, msgIncludes, msg) {
  if (ErrorClass && !(error instanceof ErrorClass)) {
    fail(
      `Expected error to be an instance of ${ErrorClass.name}, but was ${error?.constructor?.name ?? typeof error}: ${
        error?.message ?? error
      }`,
      msg,
    );
  }
  if (msgIncludes && !String(error?.message).includes(msgIncludes)) {
    fail(`Expected error message to include ${show(msgIncludes)}, but got ${show(error?.message)}`, msg);
  }
  return error;
}
export function assertThrows(fn, ErrorClass, msgIncludes, msg) {
  let threw = false, error;
  try {
    fn();
  } catch (e) {
    threw = true;
    error = e;
  }
  if (!threw) fail("Expected function to throw", msg);
  return checkError(error, ErrorClass, msgIncludes, msg);
}
export async function assertRejects(fn, ErrorClass, msgIncludes, msg) {
  let threw = false, error;
  try {
    await fn();
  } catch (e) {
    threw = true;
    error = e;
  }
  if (!threw) fail("Expected function to reject", msg);
  return checkError(error, ErrorClass, msgIncludes, msg);
}
export function unreachable(reason) {
  throw new AssertionError(`Unreachable${reason ? `: ${reason}` : ""}`);
}
