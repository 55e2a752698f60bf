/** Large files that are received as a stream: a body that is the file, or one part of a multipart body (RFC 7578). */
import { decodeField, make, type MultipartError } from "multipasta";
import type { Spooled } from "../../playlist/spool.ts";
import type { Clock } from "../../ports.ts";
import { bodyChunks } from "../request-body.ts";
import { API_CODES, ApiError } from "./codes.ts";
import { type ApiInput, type InputFields, MAX_FIELD_CHARS, MAX_FIELDS } from "./input.ts";

/** Stores the file as it arrives. */
export type KeepUpload = (chunks: AsyncIterable<Uint8Array>) => Promise<Spooled>;

/**
 * Reads a POST whose part `field`, or whose whole body, is a file, and passes its bytes to `keep` as they arrive.
 * `upload` of the result is undefined when a multipart body has no such part. Throws `ApiError` for malformed bodies,
 * or as `keep` and `bodyChunks` do.
 */
export async function readUpload(
  request: Request,
  fields: InputFields,
  field: string,
  keep: KeepUpload,
  clock: Clock,
): Promise<{ input: ApiInput; upload: Spooled | undefined }> {
  if (request.body === null) return { input: fields.input, upload: undefined };
  const contentType = request.headers.get("content-type") ?? "";
  const isMultipart = /^multipart\/form-data\s*(?:;|$)/i.test(contentType);
  const chunks = bodyChunks(request, clock);
  const parts = isMultipart ? new MultipartFile(contentType, field, fields) : null;
  const upload = await keep(parts === null ? chunks : parts.chunks(chunks));
  if (parts === null || parts.isFound) return { input: fields.input, upload };
  await upload.remove();
  return { input: fields.input, upload: undefined };
}

/** Whether a POST with this type may carry a file that is received as a stream; forms and JSON carry text alone. */
export function mayCarryFile(request: Request): boolean {
  return request.method === "POST" &&
    !/^\s*application\/(?:x-www-form-urlencoded|json)\s*(?:;|$)/i.test(request.headers.get("content-type") ?? "");
}

const MALFORMED = "the multipart body is malformed";

class MultipartFile {
  isFound = false;
  readonly #pending: Uint8Array[] = [];
  #fault: string | null = null;
  #isWhole = false;
  readonly #parser: ReturnType<typeof make>;

  constructor(contentType: string, field: string, fields: InputFields) {
    this.#parser = make({
      headers: { "content-type": contentType },
      maxParts: MAX_FIELDS,
      maxFieldSize: 4 * MAX_FIELD_CHARS,
      isFile: (info) => info.filename !== undefined || info.name === field,
      onField: (info, value) => {
        try {
          fields.add(info.name, decodeField(info, value));
        } catch (error) {
          this.#fault ??= (error as Error).message;
        }
      },
      onFile: (info) => {
        const isIt = info.name === field && !this.isFound;
        if (isIt) this.isFound = true;
        return (chunk) => {
          if (isIt && chunk !== null) this.#pending.push(chunk);
        };
      },
      onError: (error) => this.#fault ??= describe(error),
      onDone: () => this.#isWhole = true,
    });
  }

  async *chunks(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of body) {
      this.#feed(() => this.#parser.write(chunk));
      yield* this.#pending.splice(0);
    }
    this.#feed(() => {
      this.#parser.end();
      if (!this.#isWhole) this.#fault ??= MALFORMED;
    });
    yield* this.#pending.splice(0);
  }

  #feed(step: () => void): void {
    try {
      step();
    } catch {
      // The parser throws on percent signs in a file name that encode nothing.
      this.#fault ??= MALFORMED;
    }
    if (this.#fault !== null) throw new ApiError(API_CODES.invalidParameter, `invalid parameter: ${this.#fault}`);
  }
}

function describe(error: MultipartError): string {
  return error._tag === "ReachedLimit" ? "a part is too long, or there are too many" : MALFORMED;
}
