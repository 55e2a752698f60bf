/** Looks for services of a type by bonjour-service, run by Node: `node find-service.mjs <node_modules> <type>`; one JSON object per line. */
import { createRequire } from "node:module";
import process from "node:process";

const [, , modules, type] = process.argv;
const { Bonjour } = createRequire(`${modules}/x.js`)("bonjour-service");
new Bonjour().find({ type }, ({ name, port, txt, addresses }) => {
  console.log(JSON.stringify({ name, port, txt, addresses }));
});
