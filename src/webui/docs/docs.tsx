/** @jsxImportSource hono/jsx/dom */
/** The page of the API: every operation of `/openapi.json` with a form that calls this engine. */
import { render } from "hono/jsx/dom";
import { BASE, callPublic, IS_HERE } from "../engine.ts";
import { useEffect, useState } from "../state.ts";
import { callOf, tell, type Told } from "./call.ts";
import { type ApiDocument, type Field, type Operation, operationsOf } from "./document.ts";

function Docs() {
  const [document, setDocument] = useState<ApiDocument | null>(null);
  const [token, setToken] = useState("");
  const [trouble, setTrouble] = useState("");
  useEffect(() => {
    fetch(`${BASE}/openapi.json`).then((response) => response.json()).then(setDocument, () => {
      setTrouble("The engine does not respond.");
    });
    // Only pages on the engine's own machine get it; elsewhere the user enters it.
    if (!IS_HERE) return;
    callPublic<{ token: string }>("get_api_access_token").then(({ token }) => setToken(token), () => {});
  }, []);
  if (document === null) return <p class="trouble" role="alert">{trouble}</p>;
  const { info, tags } = document;
  return (
    <div class="docs">
      <header>
        <h1>{info.title} {info.version}</h1>
        <p>{info.description}</p>
        <p>
          <a href={`${BASE}/openapi.json`}>openapi.json</a> · <a href={`${BASE}/`}>Player</a>
        </p>
        <label>
          Access token
          <input
            type="password"
            autocomplete="off"
            value={token}
            onInput={(event: Event) => setToken((event.target as HTMLInputElement).value.trim())}
          />
        </label>
        <nav aria-label="Groups">
          {tags.map(({ name }) => <a key={name} href={`#${idOf(name)}`}>{name}</a>)}
        </nav>
      </header>
      <main>
        {tags.map(({ name, description }) => (
          <section key={name} id={idOf(name)} aria-label={name}>
            <h2>{name}</h2>
            <p>{description}</p>
            {operationsOf(document, name).map((one) => <OperationRow key={one.id} operation={one} token={token} />)}
          </section>
        ))}
      </main>
    </div>
  );
}

const idOf = (tag: string) => tag.toLowerCase().replaceAll(" ", "-");

function OperationRow({ operation, token }: { readonly operation: Operation; readonly token: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details
      id={operation.id}
      onToggle={(event: Event) => setOpen((event.target as HTMLDetailsElement).open)}
    >
      <summary>
        <b>{operation.verb}</b> <code>{operation.path}</code> <span>{operation.summary}</span>
      </summary>
      {isOpen ? <OperationForm operation={operation} token={token} /> : null}
    </details>
  );
}

/** Only of operations that are open: there are a thousand fields in all. */
function OperationForm({ operation, token }: { readonly operation: Operation; readonly token: string }) {
  const [told, setTold] = useState<Told & { readonly url: string } | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    const { url, init } = callOf(operation, new FormData(event.target as HTMLFormElement), BASE, token);
    setBusy(true);
    try {
      setTold({ url, ...await tell(await fetch(url, init)) });
    } catch (error) {
      setTold({ url, status: "no answer", isFailure: true, text: String(error) });
    }
    setBusy(false);
  };
  return (
    <form onSubmit={submit}>
      <p>{operation.description}</p>
      {operation.fields.map((field) => <FieldRow key={`${field.place}.${field.name}`} field={field} />)}
      <button type="submit" disabled={isBusy}>Call</button>
      {told === null ? null : (
        <output class={told.isFailure ? "failure" : ""}>
          <code>{shown(told.url)}</code>
          <p>{told.status}</p>
          <pre tabIndex={0}>{told.text}</pre>
        </output>
      )}
    </form>
  );
}

/** The address without the secret: people show this page to others. */
const shown = (url: string) => url.replace(/([?&]token=)[^&]*/, "$1…");

function FieldRow({ field }: { readonly field: Field }) {
  const name = `${field.place}.${field.name}`;
  const required = field.isRequired;
  return (
    <label>
      <span>
        <code>{field.name}</code> {required ? "required" : null} <small>{field.description}</small>
      </span>
      {field.isFile
        ? <input type="file" name={name} required={required} />
        : field.words.length > 0
        ? (
          <select name={name} required={required}>
            {required ? null : <option value=""></option>}
            {field.words.map((word) => <option key={word} value={word}>{word}</option>)}
          </select>
        )
        : <input type="text" name={name} required={required} placeholder={field.hint} />}
    </label>
  );
}

render(<Docs />, document.getElementById("app")!);
