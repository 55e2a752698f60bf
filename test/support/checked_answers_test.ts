import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { CheckedAnswers } from "./checked-answers.ts";

const ASKED = "http://127.0.0.1/server/api?method=get_network_connection_status";
const json = (body: unknown) =>
  new Response(JSON.stringify(body), { headers: { "content-type": "application/json; charset=utf-8" } });

test("CheckedAnswers passes answers on, and rejects at the end when one is not as the document has it", async () => {
  const answers = new CheckedAnswers();
  const good = { result: { connected: true }, error: null };
  assertEquals(await answers.take(new Request(ASKED), json(good)).json(), good);
  await answers.close();
  const bad = { result: { connected: true, since: 1 }, error: null };
  assertEquals(await answers.take(new Request(ASKED), json(bad)).json(), bad);
  await assertRejects(() => answers.close(), Error, "get_network_connection_status");
});

test("CheckedAnswers ignores responses that the document does not have, and those that nobody reads to the end", async () => {
  const answers = new CheckedAnswers();
  const page = new Response("<html>", { headers: { "content-type": "text/html" } });
  assertEquals(answers.take(new Request("http://127.0.0.1/"), page), page);
  const unread = answers.take(new Request(ASKED), json({ result: { connected: false }, error: null }));
  await unread.body!.cancel();
  await answers.close();
});
