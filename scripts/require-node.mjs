/** Loaded before npm scripts: says in a line what an older Node would say by a stack. */
import process from "node:process";

/** The first version that runs TypeScript without a flag. */
const NEEDED = [22, 18];

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < NEEDED[0] || (major === NEEDED[0] && minor < NEEDED[1])) {
  console.error(
    `this needs Node ${NEEDED.join(".")} or newer, and this is ${process.versions.node}: ` +
      "update Node, or run `npx -y deno task demo` instead, which needs no newer one",
  );
  process.exit(2);
}
