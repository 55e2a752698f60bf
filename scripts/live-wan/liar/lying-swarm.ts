/** Takes the place of `src/live/swarm/live-swarm.ts` in an engine that lies. */
import { LiveSwarm as HonestSwarm, type LiveSwarmOptions } from "../../../src/live/swarm/live-swarm.ts";
import { KIND } from "./lying-node.ts";

/** Says in the handshake what the node says later. */
export class LiveSwarm extends HonestSwarm {
  constructor(options: LiveSwarmOptions) {
    super(options);
    if (KIND === "sinkhole") Object.assign(this.offer, { role: "source" });
  }
}
