/** @jsxImportSource hono/jsx/dom */
/** An address as a QR code (ISO/IEC 18004), for the phone or the TV. */
import { encode } from "uqr";

/** Free modules around the code, as the standard asks for. */
const QUIET_MODULES = 4;

/** Properties of `QrCode`. */
export interface QrCodeProps {
  readonly value: string;
  readonly label: string;
}

/** The picture: dark on white whatever the page's colours, since cameras expect that. */
export function QrCode({ value, label }: QrCodeProps) {
  const { data, size } = encode(value, { border: QUIET_MODULES, ecc: "M" });
  const path = data.map((row, y) => row.map((isDark, x) => isDark ? `M${x} ${y}h1v1h-1z` : "").join("")).join("");
  return (
    <svg class="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} shape-rendering="crispEdges">
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}
