/** @jsxImportSource hono/jsx/dom */
/** Records a channel: from now on, or one of its programmes. */
import { call } from "./engine.ts";
import { useState } from "./state.ts";
import { errorText, text } from "./texts.ts";

/** Properties of `RecordButton`. */
export interface RecordButtonProps {
  /** Number of the item. */
  readonly id: number;
  /** When the programme begins, Unix seconds; null: from now on. */
  readonly programmeS: number | null;
  /** What is recorded. */
  readonly title: string;
}

/** The button; once it was pressed it leads to the recordings. */
export function RecordButton({ id, programmeS, title }: RecordButtonProps) {
  const [isDone, setDone] = useState(false);
  const [trouble, setTrouble] = useState("");
  const record = () => {
    setTrouble("");
    const programme = programmeS === null ? {} : { programme: String(programmeS) };
    call("recording_start", { item: String(id), ...programme }).then(
      () => setDone(true),
      (error) => setTrouble(errorText(error)),
    );
  };
  if (isDone) return <a class="button" href="#/recordings">{text("recordings")}</a>;
  return (
    <span>
      <button type="button" aria-label={`${text("record")}: ${title}`} onClick={record}>{text("record")}</button>
      <span role="alert">{trouble}</span>
    </span>
  );
}
