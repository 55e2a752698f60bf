/** Fields of HTTP messages. */

/** `fields` (name, value, name, value …) without those that the standard does not allow. */
export function headersOf(fields: readonly string[]): Headers {
  const headers = new Headers();
  for (let i = 0; i + 1 < fields.length; i += 2) {
    try {
      headers.append(fields[i]!, fields[i + 1]!);
    } catch {
      // `Headers` refuses it.
    }
  }
  return headers;
}
