/** State that ends with its component. */
import { useLayoutEffect, useRef, useState as useHonoState } from "hono/jsx/dom";

/** Sets a state to a value, or to what a function makes of the value it has. */
export type Setter<T> = (news: T | ((before: T) => T)) => void;

/**
 * As hono's own, but setting it does nothing once the component is gone. There, the second change after that draws the
 * component again, and it stays: a late answer would put the room that was left beside the new one.
 */
export function useState<T>(initial: T | (() => T)): [T, Setter<T>] {
  const [value, set] = useHonoState<T>(initial);
  const isGone = useRef(false);
  useLayoutEffect(() => () => {
    isGone.current = true;
  }, []);
  const own = useRef<Setter<T>>((news) => {
    if (!isGone.current) set(news);
  });
  return [value, own.current!];
}
