/** Maps errors of the operating system, as the runtimes report them, to the engine's codes. */
import { type ErrorCode, MillraceError } from "../../src/errors.ts";
import type { SocketAddress } from "../../src/ports.ts";

/** The errno for each error class that Deno throws instead of reporting an errno. */
const ERRNO_OF_NAME: Readonly<Record<string, string>> = {
  AddrInUse: "EADDRINUSE",
  AddrNotAvailable: "EADDRNOTAVAIL",
  AlreadyExists: "EEXIST",
  ConnectionAborted: "ECONNABORTED",
  ConnectionRefused: "ECONNREFUSED",
  ConnectionReset: "ECONNRESET",
  NotFound: "ENOENT",
  PermissionDenied: "EACCES",
  NotCapable: "EACCES",
};

/** The errno name (`ENOENT`, …) of an error; null when it has none. */
export function errnoOf(error: unknown): string | null {
  if (typeof error !== "object" || error === null) return null;
  const { code, name, cause } = error as { code?: unknown; name?: unknown; cause?: unknown };
  if (typeof code === "string" && /^E[A-Z0-9_]+$/.test(code)) return code;
  if (typeof name === "string" && name in ERRNO_OF_NAME) return ERRNO_OF_NAME[name]!;
  return cause === undefined ? null : errnoOf(cause);
}

/** `host:port`, with brackets around an IPv6 address. */
export function formatAddress(address: SocketAddress): string {
  return address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}

/** The error that `connect` rejects with. */
export function connectError(cause: unknown, target: SocketAddress): MillraceError {
  const errno = errnoOf(cause);
  return new MillraceError("connection_failed", `cannot connect to ${formatAddress(target)}${suffix(errno)}`, {
    cause,
    detail: { errno },
  });
}

/** The error of a connection that did not close in order. */
export function brokenError(cause: unknown, remote: SocketAddress): MillraceError {
  const errno = errnoOf(cause);
  return new MillraceError("connection_failed", `connection with ${formatAddress(remote)} broke${suffix(errno)}`, {
    cause,
    detail: { errno },
  });
}

/** The error that `listen` and `bind` reject with. */
export function bindError(cause: unknown, at: SocketAddress, what: "TCP" | "UDP" | "HTTP"): MillraceError {
  const errno = errnoOf(cause);
  const where = formatAddress(at);
  if (errno === "EADDRINUSE" || /in use/i.test(String((cause as Error)?.message))) {
    return new MillraceError("conflict", `${what} port ${where} is taken by another program`, { cause });
  }
  if (errno === "EACCES" || errno === "EPERM") {
    return new MillraceError("denied", `not permitted to use ${what} port ${where}`, { cause });
  }
  return new MillraceError("unavailable", `cannot listen at ${what} ${where}${suffix(errno)}`, { cause });
}

const FILE_CODES: Readonly<Record<string, ErrorCode>> = {
  ENOENT: "not_found",
  ENOTDIR: "not_found",
  ENOSPC: "disk_full",
  EDQUOT: "disk_full",
  EACCES: "denied",
  EPERM: "denied",
  EROFS: "denied",
};

/** The error that the file port rejects with. The path is only in `detail`, since the message may reach clients on other machines. */
export function fileError(cause: unknown, action: string, path: string): MillraceError {
  if (cause instanceof MillraceError) return cause;
  const errno = errnoOf(cause);
  const code = (errno !== null && FILE_CODES[errno]) || "io";
  return new MillraceError(code, `cannot ${action} a file or directory${suffix(errno)}`, {
    cause,
    detail: { errno, path },
  });
}

function suffix(errno: string | null): string {
  return errno === null ? "" : ` (${errno})`;
}
