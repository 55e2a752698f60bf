/** @jsxImportSource hono/jsx/dom */
/** The account that is signed in; signing in and out. */
import { call } from "./engine.ts";
import { useEffect, useState } from "./state.ts";
import { errorText, text } from "./texts.ts";

/** The card. */
export function AccountCard() {
  const [login, setLogin] = useState<string | null>(null);
  const [note, setNote] = useState("");
  const look = () =>
    call<{ login: string | null }>("check_auth").then((status) => setLogin(status.login), () => setLogin(null));
  useEffect(() => void look(), []);
  const told = (error: unknown) => {
    setNote(error instanceof Error && error.message === "auth_error" ? text("wrongPassword") : errorText(error));
  };
  const signIn = (event: Event) => {
    event.preventDefault();
    const form = event.target as HTMLFormElement;
    const value = (name: string) => String(new FormData(form).get(name));
    setNote("");
    call("sign_in", { email: value("email"), password: value("password") }).then(() => {
      form.reset();
      void look();
    }, told);
  };
  return (
    <article class="card">
      <h2>{text("account")}</h2>
      {login !== null
        ? (
          <div>
            <p>{text("signedInAs", login)}</p>
            <button type="button" onClick={() => void call("sign_out").then(look, told)}>{text("signOut")}</button>
          </div>
        )
        : (
          <form class="limits" onSubmit={signIn}>
            <label>
              {text("email")}
              <input name="email" type="text" inputMode="email" autocomplete="username" required />
            </label>
            <label>
              {text("password")}
              <input name="password" type="password" autocomplete="current-password" required />
            </label>
            <button type="submit">{text("signIn")}</button>
          </form>
        )}
      <p class="note" aria-live="polite">{note === "" && login === null ? text("accountHint") : note}</p>
    </article>
  );
}
