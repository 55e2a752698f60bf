/** State and effects that end with their component. */
import { useEffect as useHonoEffect, useLayoutEffect, useRef, useState as useHonoState } from "hono/jsx/dom";

/** Sets a state to a value, or to what a function makes of the value it has. */
export type Setter<T> = (news: T | ((before: T) => T)) => void;

/**
 * As hono's own, but setting it does nothing once the component is gone. There, the second change after that draws the
 * component again, and it stays: a late answer would put the room that was left beside the new one.
 */
export function useState<T>(initial: T | (() => T)): [T, Setter<T>] {
  const [value, set] = useHonoState<T>(initial);
  const isGone = useGone();
  const own = useRef<Setter<T>>((news) => {
    if (!isGone()) set(news);
  });
  return [value, own.current!];
}

/**
 * As hono's own, which runs an effect a frame after the component was drawn, even when that is gone by then: what the effect
 * began would never end, and the elements it needs are away.
 */
export function useEffect(effect: () => void | (() => void), deps?: readonly unknown[]): void {
  const isGone = useGone();
  useHonoEffect(() => isGone() ? undefined : effect(), deps);
}

/** Whether the component has been removed. */
function useGone(): () => boolean {
  const isGone = useRef(false);
  useLayoutEffect(() => () => {
    isGone.current = true;
  }, []);
  return () => isGone.current === true;
}
