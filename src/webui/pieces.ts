/** The picture of the pieces: a channel whose water stands as high as pieces are downloaded. */

/** Height of the picture, in the units of its paths; one cell is 1 wide. */
export const CHANNEL_HEIGHT = 9;

/** The surface of the water: one closed path over all cells, of which `cells` has the levels 0 to 9. */
export function waterPath(cells: string): string {
  let path = `M0 ${CHANNEL_HEIGHT}`;
  for (let at = 0; at < cells.length;) {
    let end = at + 1;
    while (end < cells.length && cells[end] === cells[at]) end++;
    const y = CHANNEL_HEIGHT - Number(cells[at]);
    path += `L${at} ${y}H${end}`;
    at = end;
  }
  return `${path}V${CHANNEL_HEIGHT}Z`;
}

/** Cells as full columns: what is on its way. */
export function columnsPath(cells: readonly number[]): string {
  return cells.map((cell) => `M${cell} 0h1v${CHANNEL_HEIGHT}h-1z`).join("");
}
