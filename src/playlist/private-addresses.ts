/** Decides which items may lead into the private network. */
import { sql } from "kysely";

/**
 * SQL expression, 1 or 0: whether the address of a row of `playlist_items` was given by a caller who may name private
 * addresses, or comes from an external list that such a caller added.
 */
export const MAY_NAME_PRIVATE = sql<number>`(playlist_items.allow_private = 1 OR EXISTS (
  SELECT 1 FROM external_playlists WHERE external_playlists.allow_private = 1
    AND external_playlists.id = playlist_items.external_playlist_id))`;
