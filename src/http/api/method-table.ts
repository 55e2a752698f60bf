/** The table of methods on the page of the HTTP API, made from the registry. */
import * as z from "zod";
import type { Method } from "./method.ts";

/** Markdown: each method with its access, its parameters (optional ones in brackets) and its summary. */
export function methodMarkdown(methods: readonly Method[]): string {
  const rows = methods.map((method) => {
    const cells = [`\`${method.name}\``, accessOf(method), parameters(method), method.summary];
    return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  });
  return ["| method | access | parameters | |", "| --- | --- | --- | --- |", ...rows].join("\n");
}

/** The callers that may use `method`, in words. */
export function accessOf(method: Method): string {
  const who = method.public ? "public" : "token";
  const where = method.remote ? "" : ", this machine only";
  const pages = method.openToPages ? ", pages may read it" : method.sameOriginOnly ? ", no foreign pages" : "";
  return `${who}${where}${pages}`;
}

function parameters(method: Method): string {
  const schema = z.toJSONSchema(method.params, { io: "input" }) as { properties?: object; required?: string[] };
  const names = Object.keys(schema.properties ?? {});
  return names.map((name) => schema.required?.includes(name) ? `\`${name}\`` : `[\`${name}\`]`).join(" ");
}
