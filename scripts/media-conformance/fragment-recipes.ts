/** Fragmented files in structures of muxers that are not at hand, from access units that ffmpeg made. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { type Film, type Structure, takeApart, writeFragments, writeHybrid } from "./fragmenter.ts";
import { AAC, ffmpeg, forced, H264, picture, type Recipe, sound, type Words } from "./recipes.ts";

const film: Words = [...picture(25, 6), ...sound(6), ...H264, ...AAC];
const FRAGMENTS = ["-movflags", "frag_keyframe+empty_moov+default_base_moof"];

/** A file that `write` makes of the film; it is compared with what ffmpeg wrote. */
function refragmented(name: string, write: (film: Film, plain: Uint8Array) => Uint8Array, words: Words = film): Recipe {
  return {
    name,
    commands: [ffmpeg(words, "plain.mp4"), ffmpeg("-i", "plain.mp4", "-c", "copy", FRAGMENTS, "in.mp4")],
    write: (folder, file) => {
      const read = (one: string) => new Uint8Array(readFileSync(path.join(folder, one)));
      writeFileSync(file, write(takeApart(read("in.mp4")), read("plain.mp4")));
    },
    reference: "in.mp4",
  };
}

const NO_TIMES = {
  times: "neither an index nor the fragments say when they begin: only the durations of all before them tell",
  structure: "as for times",
  faults: "as for times",
  extinf: "as for times",
};
const structured = (name: string, structure: Structure, words?: Words) =>
  refragmented(name, (one) => writeFragments(one, structure), words);

/** Its last movie box is that of the plain file, with its edits. */
const hybrid = (name: string, structure: Structure): Recipe => ({
  ...refragmented(name, (one, plain) => writeHybrid(one, plain, structure)),
  reference: "plain.mp4",
});

const ORDERS = ["together", "turns", "sound first"] as const;
const INDEXES = {
  "bare": {},
  "sidx": { sidx: "all" },
  "sidx-alone": { sidx: "alone" },
  "sidx-each": { sidx: "each", between: "styp" },
  "sidx-tree": { sidx: "tree" },
  "mfra": { mfra: "all" },
} as const satisfies Record<string, Structure>;

const pairs = ORDERS.flatMap((order) =>
  Object.entries(INDEXES).map(([index, structure]) =>
    structured(`made-${order.replace(" ", "-")}-${index}.mp4`, { ...structure, order })
  )
);

/** All of them. */
export const FRAGMENT_RECIPES: readonly Recipe[] = [
  ...pairs,
  structured("made-as-bento4.mp4", { order: "turns", sidx: "alone", mfra: "all", tfdt: 64 }),
  structured("made-as-bento4-1s.mp4", { order: "turns", sidx: "alone", mfra: "first", fragmentS: 1 }),
  structured("made-as-gpac-dash.mp4", { order: "together", sidx: "each", between: "styp", tfdt: 32, fragmentS: 2 }),
  structured("made-as-gpac-tree.mp4", { order: "together", sidx: "tree", tfdt: 64 }),
  structured("made-mfra-first.mp4", { mfra: "first" }),
  structured("made-mfra-wrong.mp4", { mfra: "wrong" }),
  structured("made-sidx-and-wrong-mfra.mp4", { sidx: "all", mfra: "wrong" }),
  structured("made-file-base.mp4", { base: "file", sidx: "all" }),
  structured("made-no-base.mp4", { base: "none", sidx: "all" }),
  structured("made-many-runs.mp4", { perRun: 7, sidx: "all" }),
  structured("made-many-runs-no-base.mp4", { perRun: 7, base: "none", mfra: "all" }),
  structured("made-tfdt-32.mp4", { tfdt: 32, sidx: "all" }),
  forced(structured("made-no-tfdt.mp4", { tfdt: null }), NO_TIMES),
  forced(structured("made-no-tfdt-sidx.mp4", { tfdt: null, sidx: "all" }), {
    times: "the index tells when a fragment's pictures begin, and nothing when its sound does",
  }),
  structured("made-emsg.mp4", { between: "emsg", sidx: "all" }),
  structured("made-free.mp4", { between: "free", mfra: "all" }),
  structured("made-one-fragment.mp4", { fragmentS: 1000, sidx: "all" }),
  hybrid("made-as-obs-hybrid.mp4", {}),
  hybrid("made-as-obs-hybrid-turns.mp4", { order: "turns" }),
];
