/** @jsxImportSource hono/jsx/dom */
/** The drawings on the player's buttons. */

/** Drawn with a line of 2 in a square of 24. */
const LINES = {
  back: "M19 12H5M11 5l-7 7 7 7",
  play: "M8 5v14l11-7z",
  pause: "M8 5v14M16 5v14",
  rewind:
    "M4.6 8.5A8.3 8.3 0 1 1 3.8 13M4 3.5v5.2h5.2M9.4 11.2l1.4-.9v5.4M13.4 11.9a1.4 1.6 0 0 1 2.8 0v2.2a1.4 1.6 0 0 1-2.8 0z",
  forward:
    "M19.4 8.5A8.3 8.3 0 1 0 20.2 13M20 3.5v5.2h-5.2M8.2 11.2l1.4-.9v5.4M12.2 11.9a1.4 1.6 0 0 1 2.8 0v2.2a1.4 1.6 0 0 1-2.8 0z",
  loud: "M4 9.5v5h3.5L12 18.5v-13L7.5 9.5zM15.5 9a4.2 4.2 0 0 1 0 6M18 6.5a7.8 7.8 0 0 1 0 11",
  muted: "M4 9.5v5h3.5L12 18.5v-13L7.5 9.5zM16 9.5l5 5M21 9.5l-5 5",
  sound:
    "M9 17.5V5l10-2v12.5M9 17.5a2.5 2.3 0 1 1-2.5-2.3A2.5 2.3 0 0 1 9 17.5zM19 15.5a2.5 2.3 0 1 1-2.5-2.3 2.5 2.3 0 0 1 2.5 2.3z",
  subtitles: "M3 5h18v14H3zM6.5 12h5M14 12h3.5M6.5 15.5h8",
  speed: "M4.5 18a9 9 0 1 1 15 0M12 14.5l4-5.5",
  next: "M5 5v14l10-7zM19 5v14",
  files: "M4 6h16M4 12h16M4 18h10",
  cast: "M3 8V5h18v14h-7M3 12a7 7 0 0 1 7 7M3 15.7A3.3 3.3 0 0 1 6.3 19",
  inPicture: "M3 5h18v14H3zM12 12h6v4.5h-6z",
  full: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5",
  unfull: "M9 4v5H4M20 9h-5V4M15 20v-5h5M4 15h5v5",
  more: "M12 5.5v.01M12 12v.01M12 18.5v.01",
} as const;

/** The names of the drawings. */
export type IconName = keyof typeof LINES;

/** One of them; says nothing to screen readers. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class={`icon ${name}`} viewBox="0 0 24 24" aria-hidden="true">
      <path d={LINES[name]} />
    </svg>
  );
}

/** Properties of `IconButton`. */
export interface IconButtonProps {
  readonly icon: IconName;
  readonly label: string;
  readonly press: () => void;
  readonly class?: string;
  readonly isPressed?: boolean;
}

/** A button with a drawing, whose words are its name and its tooltip. */
export function IconButton({ icon, label, press, class: name = "", isPressed }: IconButtonProps) {
  return (
    <button
      type="button"
      class={name}
      title={label}
      aria-pressed={isPressed === undefined ? undefined : String(isPressed)}
      onClick={press}
    >
      <Icon name={icon} />
      <span class="unseen">{label}</span>
    </button>
  );
}
