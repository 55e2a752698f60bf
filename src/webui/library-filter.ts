/** The part of the library that is shown, in the page's address. */

/** What is shown. */
export interface Filter {
  readonly query: string;
  /** Empty: all. */
  readonly category: string;
  readonly onlyFavourites: boolean;
  /** One line per channel instead of one per item. */
  readonly byChannel: boolean;
}

/** What the address of the library says. */
export function filterOf(hash: string): Filter {
  const params = new URLSearchParams(hash.split("?", 2)[1]);
  return {
    query: params.get("q") ?? "",
    category: params.get("group") ?? "",
    onlyFavourites: params.has("favourites"),
    byChannel: params.has("channels"),
  };
}

/** The address that says it. */
export function libraryHash({ query, category, onlyFavourites, byChannel }: Filter): string {
  const params = new URLSearchParams({
    ...query === "" ? {} : { q: query },
    ...category === "" ? {} : { group: category },
    ...onlyFavourites ? { favourites: "1" } : {},
    ...byChannel ? { channels: "1" } : {},
  });
  return `#/library?${params}`.replace(/\?$/, "");
}
