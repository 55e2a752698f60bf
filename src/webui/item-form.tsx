/** @jsxImportSource hono/jsx/dom */
/** Changes the words of an item and its address. */
import { call, type Item } from "./engine.ts";
import { text } from "./texts.ts";

/** Properties of `ItemForm`. */
export interface ItemFormProps {
  readonly item: Item;
  /** Names of the groups there are. */
  readonly groups: readonly string[];
  /** Called with the work that saves the item. */
  readonly save: (work: Promise<unknown>) => void;
}

/** The form. Only what was changed is sent: the rest stays as its list has it. */
export function ItemForm({ item, groups, save }: ItemFormProps) {
  const fields = [
    { name: "title", label: text("itemTitle"), value: item.title, type: "text" },
    { name: "category", label: text("group"), value: item.category ?? "", type: "text" },
    // A picture that was uploaded has an address of the engine's own.
    { name: "tvg_logo", label: text("logo"), value: isOwn(item) ? "" : item.tvg_logo, type: "url" },
    { name: "address", label: text("itemAddress"), value: addressOf(item), type: "text" },
    { name: "tvg_id", label: text("guideId"), value: item.tvg_id, type: "text" },
  ];
  const submit = (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.target as HTMLFormElement);
    const changes = fields.map(({ name, value }) => ({ name, value, now: String(form.get(name)).trim() }))
      .filter(({ value, now }) => now !== value);
    const params = Object.fromEntries(changes.map(({ name, now }) => [name, now]));
    save(changes.length === 0 ? Promise.resolve() : call("playlist_update_item", { id: String(item.id), ...params }));
  };
  return (
    <form class="edit" onSubmit={submit}>
      {fields.map(({ name, label, value, type }) => (
        <label key={name}>
          {label}
          <input
            name={name}
            type={type}
            value={value}
            autocomplete="off"
            required={name === "title" || name === "address"}
            list={name === "category" ? "groups" : undefined}
          />
        </label>
      ))}
      <datalist id="groups">{groups.map((name) => <option key={name} value={name} />)}</datalist>
      <button type="submit">{text("save")}</button>
    </form>
  );
}

function isOwn({ tvg_logo }: Item): boolean {
  return tvg_logo.includes("method=get_channel_icon");
}

function addressOf({ url, content_id, infohash }: Item): string {
  return url ?? content_id ?? infohash;
}
