/** Reads passwords: from a terminal without showing them, else the first line of standard input. */
import process from "node:process";
import { MillraceError } from "../src/errors.ts";

/** Longest line accepted, bytes. */
const MAX_LINE_BYTES = 16 * 1024;

/** The parts of a terminal that are needed to ask for a password. */
export interface Terminal {
  readonly input: {
    setRawMode(raw: boolean): unknown;
    on(event: "data", handler: (chunk: Uint8Array) => void): unknown;
    off(event: "data", handler: (chunk: Uint8Array) => void): unknown;
    resume(): unknown;
    pause(): unknown;
  };
  readonly output: { write(text: string): unknown };
}

/** The first line of `input` without its line end. Rejects with `config` when there is none or it is too long. */
export async function readPassword(input: AsyncIterable<Uint8Array | string>): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of input) {
    text += typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
    if (text.includes("\n") || text.length > MAX_LINE_BYTES) break;
  }
  const line = text.split("\n")[0]!.replace(/\r$/, "");
  if (line === "" || line.length > MAX_LINE_BYTES) {
    throw new MillraceError("config", "the password is expected as one line on standard input");
  }
  return line;
}

/** Asks twice on the terminal. Rejects with `config` when the two differ, `aborted` after Ctrl-C or Ctrl-D. */
export async function askPassword(terminal: Terminal = theTerminal()): Promise<string> {
  const [password, again] = await askHidden(terminal, ["Password: ", "Again: "]);
  if (password !== again) throw new MillraceError("config", "the two passwords differ");
  return password!;
}

function theTerminal(): Terminal {
  const { stdin, stderr } = process;
  return { input: stdin as unknown as Terminal["input"], output: stderr };
}

/**
 * Reads a line for each of `prompts`. The terminal is in raw mode from before the first prompt until after the last line, so
 * that nothing typed early is shown; in raw mode we have to handle line ends, corrections and Ctrl-C ourselves.
 */
function askHidden({ input, output }: Terminal, prompts: readonly string[]): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const decoder = new TextDecoder();
    const lines: string[] = [];
    let line: string[] = [];
    const finish = (end: () => void) => {
      input.off("data", take);
      input.setRawMode(false);
      input.pause();
      output.write("\n");
      end();
    };
    const take = (chunk: Uint8Array) => {
      for (const character of decoder.decode(chunk, { stream: true })) {
        switch (character) {
          case "\r":
          case "\n":
            lines.push(line.join(""));
            if (lines.length === prompts.length) return finish(() => resolve(lines));
            line = [];
            output.write(`\n${prompts[lines.length]}`);
            break;
          case "\x03":
          case "\x04":
            return finish(() => reject(new MillraceError("aborted", "no password was given")));
          case "\x7f":
          case "\b":
            line.pop();
            break;
          case "\x15":
            line = [];
            break;
          default:
            if (character >= " " && line.length < MAX_LINE_BYTES) line.push(character);
        }
      }
    };
    input.setRawMode(true);
    input.on("data", take);
    input.resume();
    output.write(prompts[0]!);
  });
}
