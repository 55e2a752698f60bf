/** A device of the household signs in to the page by an account's password, and is removed in the settings. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { addCheaply } from "../account/support.ts";
import { TOKEN } from "../api/support.ts";
import { serveEngine, temporaryDirectory } from "../support/engine.ts";
import { launchChromium } from "./support.ts";
import { barriers, misfits, shot } from "./webui-support.ts";

test("another device signs in by password, stays signed in, and is asked again once it is removed", async () => {
  const state = await temporaryDirectory();
  await addCheaply(state.path, "ada@example.org", "correct horse");
  const served = await serveEngine({ accessToken: TOKEN, stateDir: state.path });
  const browser = await launchChromium();
  try {
    const page = await browser.newPage({ viewport: { width: 390, height: 844 } });
    // The page as the engine sends it to other machines: changed before its script runs.
    await page.addInitScript(() =>
      document.addEventListener(
        "readystatechange",
        () => document.querySelector('meta[name="millrace-here"]')?.remove(),
      )
    );
    const signIn = async (password: string) => {
      await page.fill("[name=email]", "Ada@example.org");
      await page.fill("[name=password]", password);
      await page.click("button >> text=Sign in");
    };
    await page.goto(`${served.url}/#/library`);
    await page.waitForSelector("h1 >> text=Sign in on this device");
    assertEquals([await barriers(page), await misfits(page)], [[], { scroll: 0, small: [] }]);
    await shot(page, "sign-in-phone");
    await signIn("wrong");
    await page.waitForSelector("text=The email or the password is wrong.");
    await signIn("correct horse");
    await page.waitForSelector("text=Your library is empty");
    await page.reload();
    await page.waitForSelector("text=Your library is empty");
    await page.click('nav a[href="#/settings"]');
    await page.waitForSelector("strong >> text=this device");
    assertEquals([await barriers(page), await misfits(page)], [[], { scroll: 0, small: [] }]);
    await page.locator(".card", { hasText: "Devices that are signed in" }).getByRole("button").click();
    await page.waitForSelector("h1 >> text=Sign in on this device");
  } finally {
    await browser.close();
    await served.close();
    await state.remove();
  }
});
