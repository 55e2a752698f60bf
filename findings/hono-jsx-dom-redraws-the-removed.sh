#!/usr/bin/env bash
# hono/jsx/dom: the state of a component that was removed can still be set, by an answer that comes late. The first time
# nothing is to be seen; the second time the component is drawn again beside what replaced it, and stays. Needs node and
# npm. Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent --ignore-scripts hono@4.13.19 happy-dom@21.0.4
cat >try.mjs <<'JS'
import { jsx, render, useState } from "hono/jsx/dom";
import { Window } from "happy-dom";
const window = new Window();
globalThis.document = window.document;
let showRoom, lateAnswer;
function Room() {
  const [answers, setAnswers] = useState(0);
  lateAnswer ??= setAnswers;
  return jsx("p", {}, `room, answer ${answers}`);
}
function Page() {
  const [isRoomShown, set] = useState(true);
  showRoom = set;
  return jsx("div", {}, isRoomShown ? jsx(Room, {}) : jsx("b", {}, "home"));
}
render(jsx(Page, {}), document.body);
const seen = async () => {
  await new Promise((done) => setTimeout(done, 50));
  return document.body.textContent;
};
await seen();
showRoom(false);
const left = await seen();
lateAnswer(1);
const first = await seen();
lateAnswer(2);
const second = await seen();
showRoom(true);
showRoom(false);
const later = await seen();
console.log(`hono 4.13.19: the room was left: "${left}"; after one late answer: "${first}"; after two: "${second}"; after it was entered and left again: "${later}"`);
console.log(`most expect "home" each time`);
await window.happyDOM.close();
process.exit(left === "home" && first === "home" && second === "homeroom, answer 2" && later !== "home" ? 0 : 1);
JS
node try.mjs
