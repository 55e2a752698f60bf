/** The text that `parts` are the UTF-8 of. */
export async function textOf(parts: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  for await (const part of parts) text += decoder.decode(part, { stream: true });
  return text + decoder.decode();
}
