/** Credentials in http URLs (RFC 3986, section 3.2.1): a request takes them in a field, and nobody else may see them. */
import { basicAuthorization } from "./basic-authorization.ts";
import { percentDecoded } from "./percent.ts";

/** The `Authorization` field for the credentials in `url`; null when it has none. */
export function authorizationOf({ username, password }: URL): string | null {
  if (username === "" && password === "") return null;
  return basicAuthorization(percentDecoded(username), percentDecoded(password));
}

/** The address without its credentials, for requests and logs; unchanged when it is no URL. */
export function withoutCredentials(address: string): string {
  if (!URL.canParse(address)) return address;
  const url = new URL(address);
  url.username = url.password = "";
  return url.href;
}
