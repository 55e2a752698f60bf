/** Long answers of fronts. */
import { nextTurn } from "../../bytes/turn.ts";

/** Text as the bytes of a response, made as fast as the caller reads. Others have their turn between its parts. */
export function streamed(text: AsyncGenerator<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      await nextTurn();
      const { done, value } = await text.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    cancel: () => void text.return(undefined),
  }, { highWaterMark: 0 });
}
