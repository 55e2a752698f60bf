/**
 * Lets requests begin in turns, machine by machine. Requests that arrive together, on a thousand connections, are parsed in one
 * go, and handling each takes up to some milliseconds: without turns, whoever asks next waits for all of them, a second or
 * more. With turns it waits for one request of each other machine.
 */

/** Requests that begin in one turn of the event loop. Each response that is being sent takes its part of a turn, too. */
const PER_TURN = 8;

/** The requests of one server that have not begun. Bounded by its connections, and by the requests under way on each. */
export class RequestTurns {
  /** By machine, in the order in which the machines are served. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #beganInTurn = 0;
  #isTurnComing = false;

  /** Calls `begin`, at once or in a later turn. `machine` names the machine that the request comes from. */
  enter(machine: string, begin: () => void): void {
    if (this.#waiting.size === 0 && this.#beganInTurn < PER_TURN) {
      this.#beganInTurn++;
      this.#awaitTurn();
      return begin();
    }
    const line = this.#waiting.get(machine);
    if (line === undefined) this.#waiting.set(machine, [begin]);
    else line.push(begin);
    this.#awaitTurn();
  }

  #awaitTurn(): void {
    if (this.#isTurnComing) return;
    this.#isTurnComing = true;
    setImmediate(() => {
      this.#isTurnComing = false;
      this.#beganInTurn = 0;
      if (this.#waiting.size > 0) this.#awaitTurn();
      for (; this.#waiting.size > 0 && this.#beganInTurn < PER_TURN; this.#beganInTurn++) this.#next()();
    });
  }

  /** The longest waiting request of the machine whose turn it is. */
  #next(): () => void {
    const [machine, line] = this.#waiting.entries().next().value!;
    this.#waiting.delete(machine);
    const begin = line.shift()!;
    if (line.length > 0) this.#waiting.set(machine, line);
    return begin;
  }
}
