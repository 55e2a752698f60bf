/** Describes a broadcast among real programs behind emulated up-links. */
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
  /** The broadcaster's `--upload-limit`. */
  readonly sourceLimitMbit: number;
  readonly streamMbit: number;
  /** An MPEG TS that is broadcast again and again. Default: one of `streamMbit` is made. */
  readonly clip?: string;
  /** Least and most one-way delay between a member and the middle of the network. */
  readonly delayMs: readonly [least: number, most: number];
  /** How much an up-link's router holds before it drops packets. */
  readonly queueMs: number;
  /** Share of packets lost. Default 0. */
  readonly loss?: number;
  /** Share of viewers that nobody can connect to, and whether the source is so. Default 0, false. */
  readonly closedShare?: number;
  readonly closedSource?: boolean;
  /** All members have addresses of one /24. Default: each has one of its own. */
  readonly sameSubnet?: boolean;
  /** This many viewers, chosen by chance, swallow every packet from `atS` after the last arrival on. */
  readonly vanish?: { readonly atS: number; readonly viewers: number };
  readonly seed: number;
  /** The command that starts the engine, before its arguments. */
  readonly engine: readonly string[];
  /** Other commands for some viewers, by their number: the first that arrives is 1. */
  readonly engines?: Readonly<Record<number, readonly string[]>>;
}

/** A member's place in the network. `uplinkMbit` 0: its line takes no time. */
export interface WanNode {
  readonly address: string;
  readonly uplinkMbit: number;
  readonly queueMs: number;
  readonly delayMs: number;
  readonly loss: number;
  readonly isClosed: boolean;
}

/** Who is where: the source is node 0, viewers are nodes 1 to `viewers`, the tracker is the last one. */
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
    isClosed,
  });
  const nodes = [
    node(0, spec.sourceUplinkMbit, closedSource),
    ...Array.from({ length: viewers }, (_, i) => node(i + 1, uplinksMbit[i % uplinksMbit.length]!, closed.has(i + 1))),
    node(viewers + 1, 0, false),
  ];
  return { nodes, vanishing };
}
