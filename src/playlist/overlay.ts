/** What users change on items that came from a list, which later refreshes leave alone. */

/** Bits of the column `edited`. Columns that no list fills need none: a refresh never touches them. */
export const EDITED = { title: 1, logo: 2 } as const;
