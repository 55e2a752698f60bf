export declare function eTag(entity: string | Uint8Array, options?: { weak?: boolean }): Promise<string | undefined>;
export declare function ifNoneMatch(value: string | null, etag: string | undefined): boolean;
export declare function ifMatch(value: string | null, etag: string | undefined): boolean;
