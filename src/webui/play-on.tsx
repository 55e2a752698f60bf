/** @jsxImportSource hono/jsx/dom */
/** Sends the stream to another player: a program here, a television, another open page. */
import { act, callPublic, type OtherPlayer } from "./engine.ts";
import { Drawer } from "./menu.tsx";
import type { Stream } from "./naming.ts";
import { useState } from "./state.ts";
import { errorText, text } from "./texts.ts";

/** From this position on another player continues there instead of at the beginning, s. */
const RESUME_FROM_S = 10;

/** Properties of `PlayOn`. */
export interface PlayOnProps {
  /** Selector and file. */
  readonly stream: Stream;
  /** Where the picture stands here, s. */
  readonly at: () => number;
  /** Called once the stream plays on `player`. */
  readonly sent: (player: OtherPlayer) => void;
}

/** A button that looks for players and lists them. */
export function PlayOn({ stream, at, sent }: PlayOnProps) {
  const [players, setPlayers] = useState<readonly OtherPlayer[]>([]);
  const [note, setNote] = useState("");
  const [busy, setBusy] = useState(false);
  const told = (error: unknown) => setNote(errorText(error));
  const look = () => {
    setNote(text("lookingForPlayers"));
    const asked = callPublic<{ players: OtherPlayer[]; no_screen?: true }>("get_available_players", {
      with_reason: "1",
    });
    asked.then(({ players: found, no_screen: hasNoScreen }) => {
      setPlayers(found);
      setNote(found.length === 0 ? text(hasNoScreen ? "noScreen" : "noPlayers") : "");
    }, told);
  };
  const send = (player: OtherPlayer) => {
    const { id, name } = player;
    const from = Math.floor(at());
    setBusy(true);
    setNote(text("opening", name));
    act("open_in_player", { player_id: id, ...stream }).then(async () => {
      // A player that cannot seek begins at the beginning.
      if (from >= RESUME_FROM_S) {
        await act("control_player", { player_id: id, command: "seek", position: String(from) }).catch(() => {});
      }
      sent(player);
    }, told).finally(() => setBusy(false));
  };
  return (
    <Drawer
      class="play-on"
      words={text("playOn")}
      icon="cast"
      opened={look}
      content={() => (
        <ul aria-label={text("playOn")}>
          {players.map((player) => (
            <li key={player.id}>
              <button type="button" class="other" disabled={busy} onClick={() => send(player)}>{player.name}</button>
            </li>
          ))}
          <li class="note" aria-live="polite">{note}</li>
        </ul>
      )}
    />
  );
}
