/** Describes a broadcast among real programs behind emulated up-links. */
import { fileURLToPath } from "node:url";
import type { LiarKind } from "../../test/simulation/lies.ts";
import { seeded } from "../../test/support/random.ts";

/** A run. */
export interface LiveWanSpec {
  readonly viewers: number;
  /** How long everybody is watched after the last arrival, s. */
  readonly seconds: number;
  /** Time between two arrivals, ms. */
  readonly gapMs: number;
  /** Up-links of the viewers in the order of arrival, again from the first after the last. */
  readonly uplinksMbit: readonly number[];
  readonly sourceUplinkMbit: number;
  /** The broadcaster's `--upload-limit`. Default: none. */
  readonly sourceLimitMbit?: number;
  readonly streamMbit: number;
  /** An MPEG TS that is broadcast again and again. Default: one of `streamMbit` is made. */
  readonly clip?: string;
  /** The broadcast begins with this much of a black picture, at a small part of the bitrate, s. Default 0. */
  readonly slateS?: number;
  /** The broadcaster's `--bitrate`. Default: it measures. */
  readonly toldMbit?: number;
  /** Least and most one-way delay between a member and the middle of the network. */
  readonly delayMs: readonly [least: number, most: number];
  /** How much an up-link's router holds before it drops packets. */
  readonly queueMs: number;
  /** Share of packets lost, and how many in a row on average. Default 0 and 1. */
  readonly loss?: number;
  readonly lossBurst?: number;
  /** Share of viewers that nobody can connect to, and whether the source is so. Default 0, false. */
  readonly closedShare?: number;
  readonly closedSource?: boolean;
  /** No datagram reaches those that are closed, whatever they sent. Default false. */
  readonly closedToDatagrams?: boolean;
  /** All members have addresses of one /24. Default: each has one of its own. */
  readonly sameSubnet?: boolean;
  /** This many viewers, chosen by chance, swallow every packet from `atS` after the last arrival on. */
  readonly vanish?: { readonly atS: number; readonly viewers: number };
  /** This viewer lies, by its number: the first that arrives is 1. What it receives does not count. */
  readonly liar?: { readonly viewer: number; readonly kind: Exclude<LiarKind, "clique"> };
  /** How far clocks are off, s: the source's, then the viewers' in the order of arrival, again from the first after the last. Default: right. */
  readonly clocksOffS?: readonly number[];
  readonly seed: number;
  /** The command that starts the engine, before its arguments. */
  readonly engine: readonly string[];
  /** Other commands for some viewers, by their number: the first that arrives is 1. */
  readonly engines?: Readonly<Record<number, readonly string[]>>;
}

/** Makes the clock of a program wrong that Node or Bun runs. */
const WRONG_CLOCK = new URL("./wrong-clock.mjs", import.meta.url);

/** The command that starts the engine of a member. The source is member 0. */
export function commandOfMember(spec: LiveWanSpec, member: number): readonly string[] {
  const command = spec.engines?.[member] ?? spec.engine;
  const offS = spec.clocksOffS?.[member % spec.clocksOffS.length] ?? 0;
  if (offS === 0) return command;
  const options = [`NODE_OPTIONS=--import=${WRONG_CLOCK.href}`, `BUN_OPTIONS=--preload=${fileURLToPath(WRONG_CLOCK)}`];
  return ["env", `CLOCK_OFF_S=${offS}`, ...options, ...command];
}

/** A member's place in the network. `uplinkMbit` 0: its line takes no time. */
export interface WanNode {
  readonly address: string;
  readonly uplinkMbit: number;
  readonly queueMs: number;
  readonly delayMs: number;
  readonly loss: number;
  readonly lossBurst: number;
  readonly isClosed: boolean;
  /** Of a closed node: it hears no datagrams. Default false. */
  readonly isDeaf?: boolean;
}

/** The places of the network: the source is node 0, viewers are nodes 1 to `viewers`, the tracker is the last one. */
export interface WanPlan {
  readonly nodes: readonly WanNode[];
  /** Viewers that will vanish. */
  readonly vanishing: ReadonlySet<number>;
}

/** The plan of a run; the same for the same seed. */
export function planOf(spec: LiveWanSpec): WanPlan {
  const { viewers, closedShare = 0, closedSource = false, uplinksMbit } = spec;
  const random = seeded(spec.seed);
  const choose = (count: number) => {
    const order = Array.from({ length: viewers }, (_, i) => ({ viewer: i + 1, place: random() }));
    return new Set(order.sort((a, b) => a.place - b.place).slice(0, count).map(({ viewer }) => viewer));
  };
  const closed = choose(Math.round(closedShare * viewers));
  const vanishing = choose(spec.vanish?.viewers ?? 0);
  const [least, most] = spec.delayMs;
  const node = (i: number, uplinkMbit: number, isClosed: boolean): WanNode => ({
    address: spec.sameSubnet === true ? `52.0.7.${i + 1}` : `52.0.${i + 1}.1`,
    uplinkMbit,
    queueMs: spec.queueMs,
    delayMs: least + (most - least) * random(),
    loss: spec.loss ?? 0,
    lossBurst: spec.lossBurst ?? 1,
    isClosed,
    isDeaf: isClosed && spec.closedToDatagrams === true,
  });
  const nodes = [
    node(0, spec.sourceUplinkMbit, closedSource),
    ...Array.from({ length: viewers }, (_, i) => node(i + 1, uplinksMbit[i % uplinksMbit.length]!, closed.has(i + 1))),
    node(viewers + 1, 0, false),
  ];
  return { nodes, vanishing };
}
