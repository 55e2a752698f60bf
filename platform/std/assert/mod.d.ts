type Ctor<E extends Error = Error> = abstract new (...args: never[]) => E;
export declare class AssertionError extends Error {}
export declare function equal(a: unknown, b: unknown): boolean;
export declare function assert(expr: unknown, msg?: string): asserts expr;
export declare function assertFalse(expr: unknown, msg?: string): void;
export declare function assertEquals<T>(actual: T, expected: T, msg?: string): void;
export declare function assertNotEquals<T>(actual: T, expected: T, msg?: string): void;
export declare function assertStrictEquals<T>(actual: unknown, expected: T, msg?: string): asserts actual is T;
export declare function assertExists<T>(actual: T, msg?: string): asserts actual is NonNullable<T>;
export declare function assertStringIncludes(actual: string, expected: string, msg?: string): void;
export declare function assertMatch(actual: string, expected: RegExp, msg?: string): void;
export declare function assertNotMatch(actual: string, expected: RegExp, msg?: string): void;
export declare function assertGreater<T>(actual: T, expected: T, msg?: string): void;
export declare function assertGreaterOrEqual<T>(actual: T, expected: T, msg?: string): void;
export declare function assertLess<T>(actual: T, expected: T, msg?: string): void;
export declare function assertLessOrEqual<T>(actual: T, expected: T, msg?: string): void;
export declare function assertAlmostEquals(actual: number, expected: number, tolerance?: number, msg?: string): void;
export declare function assertArrayIncludes<T>(actual: ArrayLike<T>, expected: ArrayLike<T>, msg?: string): void;
export declare function assertInstanceOf<T>(
  actual: unknown,
  ctor: abstract new (...args: never[]) => T,
  msg?: string,
): asserts actual is T;
export declare function assertObjectMatch(actual: object, expected: object, msg?: string): void;
export declare function assertThrows<E extends Error = Error>(
  fn: () => unknown,
  ErrorClass?: Ctor<E>,
  msgIncludes?: string,
  msg?: string,
): E;
export declare function assertRejects<E extends Error = Error>(
  fn: () => PromiseLike<unknown>,
  ErrorClass?: Ctor<E>,
  msgIncludes?: string,
  msg?: string,
): Promise<E>;
export declare function unreachable(reason?: string): never;
