/** A package registry on this machine that has one package of ours, and sends whoever asks for another on to the real one. */
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** The registry. */
export interface Registry {
  /** Its address, as package managers want it. */
  readonly url: string;
  close(): Promise<void>;
}

/** Serves the packed package `tarball`, whose `package.json` is `manifest`. `upstream` is the address of the real registry. */
export async function serveRegistry(
  manifest: { readonly name: string; readonly version: string },
  tarball: Uint8Array,
  upstream: string,
): Promise<Registry> {
  const { name, version } = manifest;
  const server = createServer(({ url = "/" }, response) => {
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const [path] = url.split("?");
    if (path === `/${name}.tgz`) {
      response.setHeader("content-type", "application/octet-stream").end(tarball);
    } else if (path === `/${name}`) {
      const dist = {
        tarball: `${base}/${name}.tgz`,
        shasum: createHash("sha1").update(tarball).digest("hex"),
        integrity: `sha512-${createHash("sha512").update(tarball).digest("base64")}`,
      };
      const versions = { [version]: { ...manifest, _id: `${name}@${version}`, dist } };
      response.setHeader("content-type", "application/json")
        .end(JSON.stringify({ name, "dist-tags": { latest: version }, versions }));
    } else {
      response.writeHead(302, { location: new URL(url, upstream).href }).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
