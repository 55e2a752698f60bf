/** Processes that tests control. */
import type { ChildProcess, ProcessPort } from "../../../src/ports.ts";

/** A process that was started. */
export interface FakeProcess {
  readonly command: string;
  readonly args: readonly string[];
  readonly killed: () => boolean;
  readonly fed: () => number;
  write(output: Uint8Array): void;
  finish(output: Uint8Array, code: number, complaint?: string): void;
}

/** Processes that end when the test makes them. */
export function fakeProcesses(): { port: ProcessPort; started: FakeProcess[]; next(): Promise<void> } {
  const started: FakeProcess[] = [];
  let wake = () => {};
  const port: ProcessPort = {
    spawn(command, args) {
      let killed = false;
      let fed = 0;
      let exit = (_code: number) => {};
      let out!: ReadableStreamDefaultController<Uint8Array>;
      let err!: ReadableStreamDefaultController<Uint8Array>;
      const exited = new Promise<number>((resolve) => exit = resolve);
      const child: ChildProcess = {
        pid: started.length,
        stdin: new WritableStream({ write: (chunk) => void (fed += chunk.length) }),
        stdout: new ReadableStream({ start: (controller) => void (out = controller) }),
        stderr: new ReadableStream({ start: (controller) => void (err = controller) }),
        exited,
        kill() {
          killed = true;
          exit(137);
        },
      };
      started.push({
        command,
        args,
        killed: () => killed,
        fed: () => fed,
        write: (output) => out.enqueue(output),
        finish(output, code, complaint = "") {
          if (output.length > 0) out.enqueue(output);
          if (complaint !== "") err.enqueue(new TextEncoder().encode(complaint));
          out.close();
          err.close();
          exit(code);
        },
      });
      wake();
      return Promise.resolve(child);
    },
  };
  return { port, started, next: () => new Promise((resolve) => wake = resolve) };
}
