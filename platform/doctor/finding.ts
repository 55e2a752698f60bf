/** What one check found, and how it is printed. */

/** `warning`: something the user may want is missing; `trouble`: the engine cannot work. */
export type State = "ok" | "warning" | "trouble";

/** The outcome of one check. */
export interface Finding {
  /** What was checked, in a word or two. */
  readonly check: string;
  readonly state: State;
  /** What was found, one sentence. */
  readonly found: string;
  /** What the user can do; null where there is nothing to do. */
  readonly remedy: string | null;
}

/** All is well. */
export function ok(check: string, found: string): Finding {
  return { check, state: "ok", found, remedy: null };
}

/** Something works only in part. */
export function warning(check: string, found: string, remedy: string): Finding {
  return { check, state: "warning", found, remedy };
}

/** Something does not work. */
export function trouble(check: string, found: string, remedy: string): Finding {
  return { check, state: "trouble", found, remedy };
}

/** The finding as text for people, one or two lines with aligned columns. */
export function findingText({ check, state, found, remedy }: Finding): string {
  const line = `${state.padEnd(8)} ${check.padEnd(15)} ${found}`;
  return remedy === null ? line : `${line}\n${" ".repeat(25)}→ ${remedy}`;
}
