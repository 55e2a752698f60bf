/** One call as the page of the API makes it: the request of a form, and the response as text. */
import type { Operation } from "./document.ts";

/** Longest answer shown, bytes: a page of the playlist has a tenth of it. */
const MAX_SHOWN_BYTES = 256 * 1024;

/** A request, ready to be sent. */
export interface Call {
  readonly url: string;
  readonly init: RequestInit;
}

/** The response. */
export interface Told {
  readonly status: string;
  readonly isFailure: boolean;
  readonly text: string;
}

/** The request that `values` of `operation`'s form make; empty ones count as absent. `base` is the engine's path. */
export function callOf(operation: Operation, values: FormData, base: string, token: string): Call {
  let path = operation.path;
  const query = new URLSearchParams(operation.takesToken && token !== "" ? { token } : {});
  const headers: Record<string, string> = {};
  const parts = new FormData();
  let whole: File | null = null;
  for (const { name, place } of operation.fields) {
    const value = values.get(`${place}.${name}`);
    if (value === null || value === "" || (value instanceof File && value.size === 0)) continue;
    if (value instanceof File && place === "body") whole = value;
    else if (place === "part") parts.append(name, value);
    else if (place === "path") path = path.replace(`{${name}}`, encodeURIComponent(String(value)));
    else if (place === "header") headers[name] = String(value);
    else query.append(name, String(value));
  }
  const search = query.size === 0 ? "" : `?${query}`;
  let body: BodyInit | null = whole;
  if (operation.bodyType === "multipart/form-data") body = parts;
  if (operation.bodyType === "application/json") {
    headers["content-type"] = operation.bodyType;
    body = JSON.stringify(Object.fromEntries(parts));
  }
  return { url: `${base}${path}${search}`, init: { method: operation.verb, headers, body } };
}

/** The answer in words: JSON is laid out, other text shown as it is, and of streams only their kind. */
export async function tell(response: Response): Promise<Told> {
  const type = response.headers.get("content-type") ?? "";
  const status = `${response.status} ${response.statusText} · ${type}`;
  if (!/^text\/|json|mpegurl/.test(type)) {
    const length = response.headers.get("content-length");
    await response.body?.cancel();
    return { status, isFailure: !response.ok, text: length === null ? "" : `${length} bytes` };
  }
  const text = await beginning(response);
  try {
    const value = JSON.parse(text) as { error?: unknown } | null;
    const isFailure = !response.ok || (value?.error ?? null) !== null;
    return { status, isFailure, text: JSON.stringify(value, null, 2) };
  } catch {
    return { status, isFailure: !response.ok, text };
  }
}

/** As much of a body as is shown: a playlist of a hundred thousand items would stop the page. */
async function beginning(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  if (reader === undefined) return "";
  const decoder = new TextDecoder();
  let text = "";
  for (let bytes = 0;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    text += decoder.decode(value, { stream: true });
    if ((bytes += value.length) > MAX_SHOWN_BYTES) break;
  }
  await reader.cancel();
  return `${text}…`;
}
