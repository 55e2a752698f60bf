/** Results whose form the API fixes, with further fields of ours beside them. */

/** A result, and fields that stand beside `result` and `error` in the response. */
export class Noted<Result> {
  readonly result: Result;
  readonly notes: Readonly<Record<string, unknown>>;

  constructor(result: Result, notes: Readonly<Record<string, unknown>>) {
    this.result = result;
    this.notes = notes;
  }
}
