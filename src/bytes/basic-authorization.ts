/** The `Authorization` field of HTTP's Basic scheme. */

/** The field's value for a user and a password: RFC 7617, in UTF-8. */
export function basicAuthorization(user: string, password: string): string {
  return `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(`${user}:${password}`)))}`;
}
