/** @jsxImportSource hono/jsx/dom */
/**
 * A choice as a button that opens a list of buttons: unlike `select` it can be worked with four arrows and OK, in every
 * browser, in full screen, too.
 */
import { useRef } from "hono/jsx/dom";
import { useEffect, useState } from "./state.ts";

/** One of the choices. */
export interface Choice {
  readonly value: string;
  readonly label: string;
}

/** Properties of `Menu`. */
export interface MenuProps {
  readonly label: string;
  readonly choices: readonly Choice[];
  readonly value: string;
  readonly choose: (value: string) => void;
}

/** The menu. */
export function Menu({ label, choices, value, choose }: MenuProps) {
  const [isOpen, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const opener = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    box.current!.querySelector<HTMLElement>("[aria-pressed=true]")?.focus();
    const outside = (event: Event) => box.current!.contains(event.target as Node) || setOpen(false);
    addEventListener("pointerdown", outside);
    return () => removeEventListener("pointerdown", outside);
  }, [isOpen]);
  const close = () => {
    setOpen(false);
    opener.current!.focus();
  };
  const pressed = (event: KeyboardEvent) => {
    if (!isOpen || event.key !== "Escape") return;
    event.preventDefault();
    close();
  };
  const chosen = choices.find((choice) => choice.value === value);
  return (
    <div ref={box} class="menu" onKeyDown={pressed}>
      <button ref={opener} type="button" aria-expanded={String(isOpen)} onClick={() => setOpen(!isOpen)}>
        <span>{label}{chosen === undefined ? "" : `: ${chosen.label}`}</span>
      </button>
      {isOpen
        ? (
          <ul aria-label={label}>
            {choices.map((choice) => (
              <li key={choice.value}>
                <button
                  type="button"
                  aria-pressed={String(choice.value === value)}
                  onClick={() => {
                    close();
                    choose(choice.value);
                  }}
                >
                  {choice.label}
                </button>
              </li>
            ))}
          </ul>
        )
        : null}
    </div>
  );
}
