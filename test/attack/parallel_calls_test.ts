/** Plain load without an attack: a control for what the watcher of the attack tests measures. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { assertHarmless, withTarget } from "./support/target.ts";

test("assertHarmless() passes when many clients only ask for the version", async () => {
  await withTarget(async (target) => {
    await assertHarmless(target, async () => {
      for (let round = 0; round < 10; round++) {
        const answers = await Promise.all(
          Array.from({ length: 20 }, () => fetch(`${target.url}/webui/api/service?method=get_version`)),
        );
        for (const answer of answers) {
          assertEquals(answer.status, 200);
          await answer.body?.cancel();
        }
      }
    });
  });
});
