/** Runs a broadcast among real programs behind emulated up-links, and measures what viewers receive. Needs root and Linux. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { lyingEngine } from "./liar/lying-engine.ts";
import { afterSlate, type Broadcaster, loopOf, makeClip, startBroadcaster, startTracker } from "./programs.ts";
import { commandOfMember, type LiveWanSpec, planOf, type WanPlan } from "./spec.ts";
import { summarize, type ViewerResult, type WanSummary } from "./summary.ts";
import { Viewer } from "./viewer.ts";
import { type Carried, PYTHON, WideArea } from "./wide-area.ts";

/** The broadcast goes on for this long before the first viewer arrives, ms. */
export const SETTLE_MS = 6000;
/** Lags are sampled from this long after the last arrival on, as in the simulation, and this often, ms. */
export const LAG_AFTER_MS = 8000;
const LAG_EVERY_MS = 250;
/** Engines that start at the same time, before the first viewer arrives. */
const STARTS_AT_ONCE = 2;
/** What has to be installed, and an argument with which each program succeeds. */
const TOOLS = [[PYTHON, "--version"], ["ip", "-V"], ["ffmpeg", "-version"]] as const;

/** What came out of a run. */
export interface LiveWanResult {
  readonly summary: WanSummary;
  /** In the order of arrival, without those that vanished or lied. */
  readonly viewers: readonly ViewerResult[];
  readonly carried: Carried;
}

/** What a caller may add to a run. */
export interface LiveWanHooks {
  /** Hears what begins. */
  readonly log?: (text: string) => void;
  /** Ends the run early: it cleans up and rejects. */
  readonly signal?: AbortSignal;
}

/** Throws an error of one sentence when this machine cannot run it. */
export function requireTools(): void {
  if (process.platform !== "linux" || process.getuid?.() !== 0) {
    throw new Error("this needs root and Linux, because it makes network namespaces and TUN devices");
  }
  const missing = TOOLS.filter(([name, argument]) => spawnSync(name, [argument], { stdio: "ignore" }).status !== 0);
  if (missing.length > 0) {
    throw new Error(`these programs are not installed: ${missing.map(([name]) => name).join(", ")}`);
  }
}

/** Runs `spec`. It leaves nothing behind, even when it fails. */
export async function runLiveWan(spec: LiveWanSpec, hooks: LiveWanHooks = {}): Promise<LiveWanResult> {
  requireTools();
  const directory = mkdtempSync(path.join(tmpdir(), "millrace-wan-"));
  let network: WideArea | null = null;
  let broadcaster: Broadcaster | null = null;
  try {
    hooks.log?.("making the clip and the network");
    const clip = spec.clip ?? makeClip(directory, spec.streamMbit);
    const plan = planOf(spec);
    network = await WideArea.open(plan.nodes, spec.seed);
    const tracker = await startTracker(network, spec.viewers + 1);
    broadcaster = await startBroadcaster(network, {
      command: commandOfMember(spec, 0),
      input: spec.slateS === undefined ? loopOf(clip) : afterSlate(directory, clip, spec.slateS),
      stateDir: path.join(directory, "source"),
      tracker,
      limitMbit: spec.sourceLimitMbit,
      toldMbit: spec.toldMbit,
    });
    const stage = { spec: await withLiar(spec, directory), plan, network, broadcaster, directory };
    const viewers = await new Audience(stage, hooks).watch();
    broadcaster.stop();
    const carried = await network.close();
    network = null;
    return { summary: summarize(viewers), viewers, carried };
  } finally {
    broadcaster?.stop();
    await network?.close().catch((error) => hooks.log?.(String(error)));
    rmSync(directory, { recursive: true, force: true });
  }
}

/** `spec` with the engine of its liar. */
async function withLiar(spec: LiveWanSpec, directory: string): Promise<LiveWanSpec> {
  const { liar, engines } = spec;
  if (liar === undefined) return spec;
  return { ...spec, engines: { ...engines, [liar.viewer]: await lyingEngine(directory, liar.kind) } };
}

/** What viewers come to. */
interface Stage {
  readonly spec: LiveWanSpec;
  readonly plan: WanPlan;
  readonly network: WideArea;
  readonly broadcaster: Broadcaster;
  readonly directory: string;
}

/** The viewers of a run. */
class Audience {
  readonly #stage: Stage;
  readonly #hooks: LiveWanHooks;
  readonly #viewers: Viewer[] = [];

  constructor(stage: Stage, hooks: LiveWanHooks) {
    this.#stage = stage;
    this.#hooks = hooks;
  }

  /** Lets viewers arrive one after another, watches them and returns what they received. */
  async watch(): Promise<ViewerResult[]> {
    const { spec, plan, network } = this.#stage;
    this.#hooks.log?.("the broadcast begins");
    await Promise.all([this.#sleep(SETTLE_MS), this.#open()]);
    const firstMs = Date.now();
    for (const [i, viewer] of this.#viewers.entries()) {
      await this.#sleep(firstMs + i * spec.gapMs - Date.now());
      viewer.play();
    }
    this.#hooks.log?.(`all ${spec.viewers} viewers are there`);
    const lastMs = Date.now();
    let vanishMs = spec.vanish === undefined ? Infinity : lastMs + 1000 * spec.vanish.atS;
    for (let nowMs = lastMs; nowMs < lastMs + 1000 * spec.seconds; nowMs = Date.now()) {
      if (nowMs >= vanishMs) {
        for (const viewer of plan.vanishing) network.hole(viewer);
        this.#hooks.log?.(`${plan.vanishing.size} viewers vanish`);
        vanishMs = Infinity;
      }
      if (nowMs >= lastMs + LAG_AFTER_MS) { for (const { meter } of this.#viewers) meter.sampleLag(nowMs); }
      await this.#sleep(LAG_EVERY_MS);
    }
    return this.#results();
  }

  /** Starts the engines of all viewers, `STARTS_AT_ONCE` at a time: what a start takes is not measured. */
  async #open(): Promise<void> {
    const { spec, network, broadcaster, directory } = this.#stage;
    const starting = Array.from({ length: STARTS_AT_ONCE }, async () => {
      while (this.#viewers.length < spec.viewers) {
        const node = this.#viewers.length + 1;
        const command = commandOfMember(spec, node);
        const stateDir = path.join(directory, `viewer-${node}`);
        const viewer = new Viewer({ network, node, command, broadcaster, stateDir });
        this.#viewers.push(viewer);
        await viewer.ready();
      }
    });
    await Promise.all(starting);
  }

  #results(): ViewerResult[] {
    const nowMs = Date.now();
    const results = this.#viewers.map((viewer, i) => {
      const { uplinkMbit, isClosed } = this.#stage.network.nodes[i + 1]!;
      const figures = viewer.meter.end(nowMs);
      const complaint = figures.joinMs === null ? viewer.lastWords() : "";
      return { viewer: i + 1, uplinkMbit, isClosed, figures, complaint };
    });
    const { plan, spec } = this.#stage;
    return results.filter(({ viewer }) => !plan.vanishing.has(viewer) && viewer !== spec.liar?.viewer);
  }

  #sleep(ms: number): Promise<void> {
    return sleep(Math.max(0, ms), undefined, { signal: this.#hooks.signal });
  }
}
