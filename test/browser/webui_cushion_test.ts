/** What the player says while a film waits because its peers are slower. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { seedFiles, serveEngine } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { until } from "../support/until.ts";
import { launchChromium } from "./support.ts";
import { barriers, frames, shot } from "./webui-support.ts";

test("the player says when a film that waits for slow peers plays without a stop, and plays it anyway", async () => {
  const seeder = await seedFiles([{ path: "film.mp4", bytes: clip("mp4-30fps.mp4") }]);
  const served = await serveEngine();
  const browser = await launchChromium();
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 1040 } });
    const status = async () => await page.locator(".status").textContent() ?? "";
    let said: Record<string, unknown> = {};
    await page.route("**/engine/stat/**", async (route) => {
      const answer = await (await route.fetch()).json();
      await route.fulfill({ json: { ...answer, response: { ...answer.response, ...said } } });
    });
    await page.goto(`${served.url}/#/play?q=${encodeURIComponent(seeder.magnet)}`);
    await until("pictures are shown", async () => await frames(page) > 10);
    const held = { status: "prefuf", progress: 40, stall_reason: "slow_peers" };
    said = { ...held, cushion_wait_s: 230, cushion_play_s: null };
    await until("the page says so", async () => /plays without a stop in 4 min/.test(await status()));
    assertEquals(await page.locator(".filling b").textContent(), "40 %");
    await shot(page, "cushion");
    assertEquals(await barriers(page), []);
    said = { ...held, cushion_wait_s: 600, cushion_play_s: 1200 };
    await until("it says for how long", async () => /in 10 min, then for 20 min/.test(await status()));
    const asked = page.waitForRequest((request) => request.url().endsWith("?method=play_now"));
    await page.click("text=Play anyway");
    assertEquals((await (await asked).response())?.status(), 200);
    said = {};
    await until("it has nothing more to say", async () => await page.locator("text=Play anyway").count() === 0);
  } finally {
    await browser.close();
    await served.close();
    await seeder.close();
  }
});
