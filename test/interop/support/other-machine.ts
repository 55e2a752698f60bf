/** Another machine in a local network with this one: a network namespace of Linux, joined by a pair of virtual interfaces. */
import { execFile } from "node:child_process";
import process from "node:process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A machine that programs can be started on. */
export interface OtherMachine {
  /** This machine's address in the network that the two share. */
  readonly ownHost: string;
  readonly host: string;
  /** The other machine's interface. */
  readonly interfaceName: string;
  /** Arguments to put before a command so that it runs on that machine. */
  readonly command: readonly string[];
  remove(): Promise<void>;
}

/**
 * Makes a machine in a network of one family. `net` (0–255) must differ between tests that run at the same time. Needs root.
 */
export async function otherMachine(net: number, family: 4 | 6 = 4): Promise<OtherMachine> {
  const name = `mr${net}x${process.pid}`;
  const [own, its] = [`mr${net}a${process.pid % 100_000}`, `mr${net}b${process.pid % 100_000}`];
  const network = family === 4 ? `10.213.${net}.` : `fd21:3:${net}::`;
  const [ownHost, host] = [`${network}1`, `${network}2`];
  const length = family === 4 ? ["/24"] : ["/64", "nodad"];
  const ip = (...args: string[]) => run("ip", args);
  const join = async (at: readonly string[], link: string, address: string) => {
    await ip(...at, "address", "add", `${address}${length[0]}`, "dev", link, ...length.slice(1));
    await ip(...at, "link", "set", link, "up");
  };
  await ip("netns", "add", name);
  try {
    await ip("link", "add", own, "type", "veth", "peer", "name", its, "netns", name);
    await join([], own, ownHost);
    await ip("-n", name, "link", "set", "lo", "up");
    await join(["-n", name], its, host);
    await ip("-n", name, "route", "add", "default", "via", ownHost);
  } catch (error) {
    await ip("netns", "delete", name);
    throw error;
  }
  return {
    ownHost,
    host,
    interfaceName: its,
    command: ["ip", "netns", "exec", name],
    // Deleting the namespace also removes its interface and the other end of the link.
    remove: async () => void await ip("netns", "delete", name),
  };
}
