/** Child of the crash test: writes in small transactions and prints each acknowledged one, until it is killed. */
import process from "node:process";
import { loadPorts } from "../../platform/detect.ts";
import { createStore } from "../../src/database/store.ts";

const [path, round] = process.argv.slice(2);
const db = await createStore(await loadPorts(), { kind: "file", path: path! }).open();
for (let i = 0;; i++) {
  const key = `${round}-${i}`;
  await db.transaction().execute(async (trx) => {
    await trx.insertInto("settings").values({ key: `${key}-a`, value: "x".repeat(i % 700) }).execute();
    await trx.insertInto("settings").values({ key: `${key}-b`, value: "" }).execute();
    if (i % 3 === 0) await trx.deleteFrom("settings").where("key", "=", `${round}-junk`).execute();
    else await trx.replaceInto("settings").values({ key: `${round}-junk`, value: key }).execute();
  });
  process.stdout.write(`${key}\n`);
}
