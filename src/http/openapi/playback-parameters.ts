/** Parameters of a start as the document describes them. */
import { PLAYBACK, type PlaybackParams } from "../playback-schema.ts";
import { inQuery } from "./parameters.ts";
import type { Components, Json } from "./schema.ts";

/** All parameters of a start, also those without an effect. */
export function startParameters(components: Components): readonly Json[] {
  const { properties } = components.schemaOf(PLAYBACK, "input") as { properties: Record<string, Json> };
  return Object.entries(properties).map(([name, { deprecated, ...field }]) => {
    const parameter = inQuery(name, field);
    return components.parameter(nameOf(name), deprecated ? { ...parameter, deprecated } : parameter);
  });
}

/** Some of the parameters of a start, for other operations that take them. */
export function someOfStart(components: Components, names: readonly (keyof PlaybackParams)[]): readonly Json[] {
  const all = startParameters(components);
  return all.filter(({ $ref }) => names.some((name) => String($ref).endsWith(`/${nameOf(name)}`)));
}

const nameOf = (parameter: string) => `start.${parameter}`;
