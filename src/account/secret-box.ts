/** Secrets at rest: AES-256-GCM with a key kept in the state directory, apart from the database. */
import { fromHex, toHex } from "../bytes/hex.ts";
import { hasCode, MillraceError } from "../errors.ts";
import type { FilePort } from "../ports.ts";

/** File mode: only the owner may read and write. */
const SECRET_MODE = 0o600;
const KEY_BYTES = 32;
/** Length of the initialisation vector: NIST SP 800-38D, section 8.2. */
const IV_BYTES = 12;
/** Begins every sealed text, so that the format can change. */
const PREFIX = "v1:";

/** Encrypts (seals) and decrypts (opens) texts. */
export interface SecretBox {
  /** Seals `text`; only `open` with the same `context` returns it. */
  seal(text: string, context: string): Promise<string>;
  /** Rejects with `corrupt` when it was sealed with another key or for another context. */
  open(sealed: string, context: string): Promise<string>;
}

/** A box with a key of 32 bytes. */
export function createSecretBox(key: Uint8Array): SecretBox {
  let imported: Promise<CryptoKey> | null = null;
  const cryptoKey = () =>
    imported ??= crypto.subtle.importKey("raw", new Uint8Array(key), "AES-GCM", false, ["encrypt", "decrypt"]);
  const algorithm = (iv: Uint8Array<ArrayBuffer>, context: string) => ({
    name: "AES-GCM",
    iv,
    additionalData: new TextEncoder().encode(context),
  });
  return {
    async seal(text, context) {
      const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
      const plain = new TextEncoder().encode(text);
      const sealed = await crypto.subtle.encrypt(algorithm(iv, context), await cryptoKey(), plain);
      return PREFIX + toHex(iv) + toHex(new Uint8Array(sealed));
    },
    async open(sealed, context) {
      try {
        if (!sealed.startsWith(PREFIX)) throw new Error("not sealed");
        const bytes = new Uint8Array(fromHex(sealed.slice(PREFIX.length)));
        const [iv, body] = [bytes.slice(0, IV_BYTES), bytes.slice(IV_BYTES)];
        return new TextDecoder().decode(
          await crypto.subtle.decrypt(algorithm(iv, context), await cryptoKey(), body),
        );
      } catch (cause) {
        throw new MillraceError("corrupt", "a stored password was sealed with another key; enter it again", { cause });
      }
    },
  };
}

/**
 * The box whose key is in `<stateDir>/secret-key`, created (mode 600) at the first use; without a state directory, a
 * key for this run. Calls reject with `corrupt` when the file holds something else.
 */
export function loadSecretBox(files: FilePort, stateDir: string | null): SecretBox {
  let loading: Promise<SecretBox> | null = null;
  const box = () =>
    loading ??= loadKey(files, stateDir).then(createSecretBox).catch((error) => {
      loading = null;
      throw error;
    });
  return {
    seal: async (text, context) => await (await box()).seal(text, context),
    open: async (sealed, context) => await (await box()).open(sealed, context),
  };
}

async function loadKey(files: FilePort, stateDir: string | null): Promise<Uint8Array> {
  const made = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
  if (stateDir === null) return made;
  const path = `${stateDir}/secret-key`;
  try {
    const text = new TextDecoder().decode(await files.readFile(path, { maxBytes: 1024 })).trim();
    if (!/^[0-9a-f]{64}$/.test(text)) {
      throw new MillraceError("corrupt", "the file does not hold a key", { detail: { path } });
    }
    return fromHex(text);
  } catch (error) {
    if (!hasCode(error, "not_found")) throw error;
  }
  await files.makeDirectory(stateDir);
  await files.writeFile(path, new TextEncoder().encode(`${toHex(made)}\n`), { mode: SECRET_MODE });
  return made;
}
