/** @jsxImportSource hono/jsx/dom */
/** Asks who is there, when the page is on another machine than the engine: an account's password, or the token. */
import { call, EngineError, signIn, useToken } from "./engine.ts";
import { Heading } from "./heading.tsx";
import { useState } from "./state.ts";
import { errorText, text } from "./texts.ts";

/** Properties of `SignInForm`. */
export interface SignInFormProps {
  /** The page has a token that the engine takes. */
  readonly done: () => void;
}

/** The form. */
export function SignInForm({ done }: SignInFormProps) {
  const [wrong, setWrong] = useState("");
  const submit = (send: (value: (name: string) => string) => Promise<unknown>) => (event: Event) => {
    event.preventDefault();
    const data = new FormData(event.target as HTMLFormElement);
    setWrong("");
    send((name) => String(data.get(name))).then(done, (error) => {
      setWrong(
        error instanceof EngineError && error.message === "auth_error" ? text("wrongPassword") : errorText(error),
      );
    });
  };
  const withToken = (value: (name: string) => string) => {
    useToken(value("token"));
    return call("check_auth");
  };
  return (
    <section class="token">
      <Heading words={text("signInHere")} />
      <p>{text("signInHint")}</p>
      <form onSubmit={submit((value) => signIn(value("email"), value("password")))}>
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
      <details>
        <summary>{text("tokenTitle")}</summary>
        <p>{text("tokenHint")}</p>
        <form onSubmit={submit(withToken)}>
          <label>
            {text("tokenField")}
            <input name="token" type="password" autocomplete="off" required pattern="[0-9a-fA-F]{64}" />
          </label>
          <button type="submit">{text("enter")}</button>
        </form>
      </details>
      <p role="alert">{wrong}</p>
    </section>
  );
}
