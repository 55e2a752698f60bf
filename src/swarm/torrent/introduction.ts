/** Which pieces we announce after our handshake. */
import type { Bitfield } from "../../bytes/bitfield.ts";
import type { PeerSession } from "./peer-session.ts";
import type { Transfer } from "../data/transfer.ts";

/** Sends a new peer what we have; if part of that left with our handshake, only the rest. */
export function introduce(session: PeerSession, transfer: Transfer | null): void {
  const link = session.link!;
  if (session.told !== null) return tellNews(session, session.told, transfer);
  if (transfer === null || transfer.bank.have.count === 0) return link.haveNone();
  // Peers without BEP 6 need this before `haveAll`.
  link.setPieceCount(transfer.metainfo.pieceCount, transfer.metainfo);
  if (transfer.bank.have.full) link.haveAll();
  else link.bitfield(transfer.bank.have.bytes);
}

function tellNews(session: PeerSession, told: Bitfield, transfer: Transfer | null): void {
  const link = session.link!;
  const have = transfer?.bank.have;
  // BEP 3 allows a bitfield only as the first message.
  if (have?.full && session.fast && told.count === 0) return link.haveAll();
  if (told.count === 0) link.haveNone();
  if (have === undefined) return;
  for (let piece = 0; piece < have.size; piece++) if (have.has(piece) && !told.has(piece)) link.have(piece);
}
