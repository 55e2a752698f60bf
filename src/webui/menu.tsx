/** @jsxImportSource hono/jsx/dom */
/**
 * A choice as a button that opens a list of buttons: unlike `select` it can be worked with four arrows and OK, in every
 * browser, in full screen, too.
 */
import { useRef } from "hono/jsx/dom";
import type { Child } from "hono/jsx";
import { Icon, type IconName } from "./icons.tsx";
import { useEffect, useState } from "./state.ts";
import { text } from "./texts.ts";

/** Properties of `Drawer`. */
export interface DrawerProps {
  /** The words of its button: shown, or its name and tooltip where there is an icon. */
  readonly words: string;
  readonly icon?: IconName;
  readonly class?: string;
  /** Called when it opens. */
  readonly opened?: () => void;
  /** What it holds while it is open. */
  readonly content: (close: () => void) => Child;
}

/** A button that opens something above or below it. Escape and a click elsewhere close it. */
export function Drawer({ words, icon, class: name = "", opened, content }: DrawerProps) {
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
    if (!isOpen || event.key !== "Escape" || event.defaultPrevented) return;
    event.preventDefault();
    close();
  };
  const toggle = () => {
    if (!isOpen) opened?.();
    setOpen(!isOpen);
  };
  return (
    <div ref={box} class={`menu ${name}`} onKeyDown={pressed}>
      <button
        ref={opener}
        type="button"
        title={icon === undefined ? undefined : words}
        aria-expanded={String(isOpen)}
        onClick={toggle}
      >
        {icon === undefined ? null : <Icon name={icon} />}
        <span class={icon === undefined ? "" : "unseen"}>{words}</span>
      </button>
      {isOpen ? content(close) : null}
    </div>
  );
}

/** One of the choices. */
export interface Choice {
  readonly value: string;
  readonly label: string;
}

/** Properties of `Menu`. */
export interface MenuProps {
  readonly label: string;
  readonly icon?: IconName;
  readonly choices: readonly Choice[];
  readonly value: string;
  readonly choose: (value: string) => void;
  /** Lines below the choices: `Stepper`s and others. */
  readonly children?: Child;
}

/** The menu. */
export function Menu({ label, icon, choices, value, choose, children }: MenuProps) {
  const chosen = choices.find((choice) => choice.value === value);
  const words = `${label}${chosen === undefined ? "" : `: ${chosen.label}`}`;
  const content = (close: () => void) => (
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
      {children}
    </ul>
  );
  return <Drawer words={words} {...icon === undefined ? {} : { icon }} content={content} />;
}

/** Properties of `Stepper`. */
export interface StepperProps {
  readonly label: string;
  /** As it is shown. */
  readonly value: string;
  readonly lower: () => void;
  readonly raise: () => void;
}

/** A line of a menu: a number that two buttons change. */
export function Stepper({ label, value, lower, raise }: StepperProps) {
  return (
    <li class="stepper">
      <span>{label}</span>
      <button type="button" aria-label={text("lower", label)} onClick={lower}>−</button>
      <output>{value}</output>
      <button type="button" aria-label={text("raise", label)} onClick={raise}>+</button>
    </li>
  );
}
