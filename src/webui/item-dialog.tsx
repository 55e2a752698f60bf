/** @jsxImportSource hono/jsx/dom */
/** Everything about a line of the library: its sources, whether they are alive, and what can be done with it. */
import { useRef } from "hono/jsx/dom";
import { type Check, checkText } from "./checks.ts";
import { call, type Item } from "./engine.ts";
import { ProgrammeList } from "./guide.tsx";
import { ItemForm } from "./item-form.tsx";
import { addressOf, type Row, setFlag, titleOf } from "./item-row.tsx";
import { RecordButton } from "./record-button.tsx";
import { useEffect, useState } from "./state.ts";
import { errorText, text, timeText } from "./texts.ts";

/** Properties of `ItemDialog`. */
export interface ItemDialogProps {
  readonly row: Row;
  readonly checks: ReadonlyMap<number, Check>;
  /** Names of the groups there are. */
  readonly groups: readonly string[];
  /** Begins to look whether these items are alive. */
  readonly check: (ids: readonly number[]) => void;
  /** `changed`: the list is no longer what it was. */
  readonly close: (changed: boolean) => void;
}

/** The dialog; it is shown as long as it exists. */
export function ItemDialog({ row, checks, groups, check, close }: ItemDialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const changed = useRef(false);
  const [trouble, setTrouble] = useState("");
  const [first] = row.items;
  const [showsGuide, setShowsGuide] = useState(false);
  const [isEnabled, setEnabled] = useState(first!.enabled);
  const [isLocked, setLocked] = useState(first!.locked);
  useEffect(() => {
    const element = dialog.current!;
    const closed = () => close(changed.current!);
    element.addEventListener("close", closed);
    element.showModal();
    return () => element.removeEventListener("close", closed);
  }, []);
  const act = (work: Promise<unknown>, undo: () => void = () => {}) => {
    setTrouble("");
    changed.current = true;
    return work.then(() => true, (error) => {
      undo();
      setTrouble(errorText(error));
      return false;
    });
  };
  const toggle = (method: string, value: boolean, set: (value: boolean) => void) => {
    set(value);
    void act(setFlag(row, method, value), () => set(!value));
  };
  const trash = async () => {
    const ids = row.items.map(({ id }) => id).join();
    if (await act(call("playlist_delete_items", { ids }))) dialog.current!.close();
  };
  /** After a change the row is another one: the library reads it again. */
  const save = async (work: Promise<unknown>) => {
    if (await act(work)) dialog.current!.close();
  };
  const title = titleOf(first!);
  return (
    <dialog ref={dialog} class="sheet" aria-label={title}>
      <h2>{title}</h2>
      {row.items.length > 1 ? <p class="note">{text("sources", row.items.length)}</p> : null}
      <ul class="rows">{row.items.map((item) => <Source key={item.id} item={item} check={checks.get(item.id)} />)}</ul>
      {first!.is_live === 0
        ? null
        : (
          <details onToggle={(event: Event) => (event.target as HTMLDetailsElement).open && setShowsGuide(true)}>
            <summary class="button">{text("programmes")}</summary>
            {showsGuide ? <ProgrammeList id={first!.id} /> : null}
          </details>
        )}
      {isLocked ? null : (
        <details>
          <summary class="button">{text("edit")}</summary>
          {row.items.map((item) => (
            <ItemForm
              key={item.id}
              item={item}
              groups={groups}
              save={(work) => void save(work)}
            />
          ))}
        </details>
      )}
      <label class="switch">
        <input
          type="checkbox"
          role="switch"
          checked={isEnabled}
          disabled={isLocked}
          onChange={() => toggle("playlist_item_set_enabled", !isEnabled, setEnabled)}
        />
        <span>{text("enabled")}</span>
      </label>
      <label class="switch">
        <input
          type="checkbox"
          role="switch"
          checked={isLocked}
          onChange={() => toggle("playlist_item_set_locked", !isLocked, setLocked)}
        />
        <span>{text("locked")}</span>
      </label>
      {first!.is_live === 0 ? null : (
        <p>
          <RecordButton id={first!.id} programmeS={null} title={title} />
        </p>
      )}
      <p role="alert">{trouble}</p>
      <div class="actions">
        <button type="button" onClick={() => check(row.items.map(({ id }) => id))}>{text("checkNow")}</button>
        <button type="button" disabled={isLocked} onClick={() => void trash()}>{text("trash")}</button>
        <button type="button" class="big" onClick={() => dialog.current!.close()}>{text("close")}</button>
      </div>
    </dialog>
  );
}

function Source({ item, check }: { readonly item: Item; readonly check: Check | undefined }) {
  const address = addressOf(item);
  return (
    <li>
      <div>
        <strong>{titleOf(item)}</strong>
        <small>{item.url ?? item.content_id ?? item.infohash}</small>
        {check === undefined ? <small>{text("neverChecked")}</small> : (
          <small>
            <span class={`pulse ${check.state}`}>{checkText(check)}</span>
            {[check.message, text("checkedAt", timeText(check.checked_at))].filter((part) => part !== "").join(" · ")}
          </small>
        )}
      </div>
      {address === null ? null : <a class="button" href={address}>{text("play")}</a>}
    </li>
  );
}
