/** The peer wire protocol: what other folders may use. */
export { acceptPeer, connectPeer } from "./connect.ts";
export { encryptionRefused } from "./handshake.ts";
export { MAX_BLOCK_BYTES, MAX_METADATA_BYTES } from "./limits.ts";
export type {
  AcceptPeerOptions,
  AcceptTarget,
  ConnectPeerOptions,
  EncryptionMode,
  LinkEnvironment,
  LinkSettings,
} from "./options.ts";
export { createPeerId } from "./peer-id.ts";
