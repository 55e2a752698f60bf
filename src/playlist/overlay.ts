/** Marks what users changed on items that came from a list; later refreshes leave it alone. */

/** Bits of the column `edited`. Columns that no list fills need no bit: a refresh never touches them. */
export const EDITED = { title: 1, logo: 2, category: 4, guide: 8, address: 16 } as const;
