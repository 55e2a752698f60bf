/** Messages of Multicast DNS (RFC 1035 section 4, RFC 6762 section 18), the part that a search for services needs. */

/** Longest message read, bytes: RFC 6762, section 17. */
export const MAX_MESSAGE_BYTES = 9000;
/** Most questions and records of one message: answers about a service have four or five records. */
const MAX_QUESTIONS = 32;
const MAX_RECORDS = 128;
/** Longest name, and longest label, bytes (RFC 1035, section 2.3.4). */
const MAX_NAME_BYTES = 255;
const MAX_LABEL_BYTES = 63;
/**
 * Most labels and pointers of all names of one message. Without a bound, compressed names that all lead to one of 127 labels
 * make a message of 2 KB cost 100 ms. A full message about services has six labels per record.
 */
const MAX_LABELS = 1024;

const CLASS_IN = 1;
/** Highest bit of a class: "unicast response" in a question, "cache flush" in a record. */
const TOP_BIT = 0x8000;

/** The labels of a name without the root. Labels of services may hold any text, dots included (RFC 6763, section 4.3). */
export type DnsName = readonly string[];

/** Numbers of record types. */
export const DNS_TYPES = { A: 1, PTR: 12, TXT: 16, SRV: 33, ANY: 255 } as const;

/** A question. */
export interface DnsQuestion {
  readonly name: DnsName;
  /** Number of the requested type. */
  readonly type: number;
}

/** Content of a record; records of other types are left out. */
export type DnsData =
  | { readonly type: "A"; readonly address: string }
  | { readonly type: "PTR"; readonly target: DnsName }
  | { readonly type: "SRV"; readonly port: number; readonly target: DnsName }
  | { readonly type: "TXT"; readonly strings: readonly Uint8Array[] };

/** A record. */
export type DnsRecord = DnsData & {
  readonly name: DnsName;
  /** How long the record is valid; 0: it is not any more. */
  readonly ttlSeconds: number;
  /** Whether older records of this name and type become invalid. */
  readonly isUnique: boolean;
};

/** A message; answers, authorities and additional records are one list. */
export interface DnsMessage {
  /** Repeated in answers to a question that does not come from port 5353. */
  readonly id: number;
  readonly isResponse: boolean;
  readonly questions: readonly DnsQuestion[];
  readonly records: readonly DnsRecord[];
}

/** A key that is equal for equal names: ASCII letters are compared in lower case (RFC 6762, section 16). */
export function nameKey(name: DnsName): string {
  return name.map((label) => label.replace(/[A-Z]/g, (letter) => letter.toLowerCase())).join("\0");
}

/** Reads a message; null when it is malformed, too large, or neither a question nor an answer. */
export function readMessage(data: Uint8Array): DnsMessage | null {
  if (data.length > MAX_MESSAGE_BYTES) return null;
  try {
    return new Reader(data).message();
  } catch (error) {
    if (error instanceof Malformed) return null;
    throw error;
  }
}

const DECODER = new TextDecoder();

class Malformed extends Error {}

class Reader {
  readonly #data: Uint8Array;
  readonly #view: DataView;
  #at = 0;
  #labels = 0;

  constructor(data: Uint8Array) {
    this.#data = data;
    this.#view = new DataView(data.buffer, data.byteOffset, data.length);
  }

  message(): DnsMessage | null {
    const [id, flags, questionCount, ...recordCounts] = [1, 2, 3, 4, 5, 6].map(() => this.#uint16()) as [
      number,
      number,
      number,
      number,
      number,
      number,
    ];
    // Ignore other opcodes and response codes (RFC 6762, sections 18.3 and 18.11).
    if ((flags & 0x780f) !== 0) return null;
    const recordCount = recordCounts.reduce((sum, count) => sum + count, 0);
    if (questionCount > MAX_QUESTIONS || recordCount > MAX_RECORDS) return null;
    const questions: DnsQuestion[] = [];
    for (let i = 0; i < questionCount; i++) {
      const name = this.#name();
      const type = this.#uint16();
      if ((this.#uint16() & ~TOP_BIT) === CLASS_IN) questions.push({ name, type });
    }
    const records: DnsRecord[] = [];
    for (let i = 0; i < recordCount; i++) {
      const record = this.#record();
      if (record !== null) records.push(record);
    }
    return { id, isResponse: (flags & 0x8000) !== 0, questions, records };
  }

  #record(): DnsRecord | null {
    const name = this.#name();
    const type = this.#uint16();
    const dnsClass = this.#uint16();
    const ttlSeconds = this.#uint16() * 0x10000 + this.#uint16();
    const lengthBytes = this.#uint16();
    const end = this.#at + lengthBytes;
    if (end > this.#data.length) throw new Malformed();
    const data = this.#recordData(type, lengthBytes);
    if (this.#at > end) throw new Malformed();
    this.#at = end;
    if (data === null || (dnsClass & ~TOP_BIT) !== CLASS_IN) return null;
    return { name, ttlSeconds, isUnique: (dnsClass & TOP_BIT) !== 0, ...data };
  }

  #recordData(type: number, lengthBytes: number): DnsData | null {
    switch (type) {
      case DNS_TYPES.A:
        return lengthBytes === 4 ? { type: "A", address: this.#take(4).join(".") } : null;
      case DNS_TYPES.PTR:
        return { type: "PTR", target: this.#name() };
      case DNS_TYPES.SRV: {
        this.#take(4); // Skip priority and weight: a service of the local network has one host.
        return { type: "SRV", port: this.#uint16(), target: this.#name() };
      }
      case DNS_TYPES.TXT: {
        const strings: Uint8Array[] = [];
        for (const end = this.#at + lengthBytes; this.#at < end;) {
          const length = this.#take(1)[0]!;
          if (this.#at + length > end) throw new Malformed();
          strings.push(this.#take(length).slice());
        }
        return { type: "TXT", strings };
      }
      default:
        return null;
    }
  }

  /** Reads a name (RFC 1035, section 4.1.4). Each pointer must lead to an earlier place than the last one, so loops are impossible. */
  #name(): DnsName {
    const labels: string[] = [];
    let at = this.#at;
    let front = at;
    let after: number | null = null;
    let totalBytes = 1;
    for (;;) {
      const length = this.#data[at];
      if (length === undefined) throw new Malformed();
      if (length === 0) break;
      if (++this.#labels > MAX_LABELS) throw new Malformed();
      if (length <= MAX_LABEL_BYTES) {
        totalBytes += length + 1;
        if (totalBytes > MAX_NAME_BYTES || at + 1 + length > this.#data.length) throw new Malformed();
        labels.push(DECODER.decode(this.#data.subarray(at + 1, at + 1 + length)));
        at += 1 + length;
      } else {
        const low = this.#data[at + 1];
        if ((length & 0xc0) !== 0xc0 || low === undefined) throw new Malformed();
        after ??= at + 2;
        at = (length & 0x3f) << 8 | low;
        if (at >= front) throw new Malformed();
        front = at;
      }
    }
    this.#at = after ?? at + 1;
    return labels;
  }

  #uint16(): number {
    if (this.#at + 2 > this.#data.length) throw new Malformed();
    const value = this.#view.getUint16(this.#at);
    this.#at += 2;
    return value;
  }

  #take(count: number): Uint8Array {
    if (this.#at + count > this.#data.length) throw new Malformed();
    return this.#data.subarray(this.#at, this.#at += count);
  }
}

/** Writes a message without compressed names. Throws RangeError for a label or a string that does not fit. */
export function writeMessage({ id, isResponse, questions, records }: DnsMessage): Uint8Array {
  const bytes: number[] = [];
  // Responses have the "authoritative answer" bit set (RFC 6762, section 18.4).
  for (const value of [id, isResponse ? 0x8400 : 0, questions.length, records.length, 0, 0]) pushUint16(bytes, value);
  for (const { name, type } of questions) {
    pushName(bytes, name);
    pushUint16(bytes, type);
    pushUint16(bytes, CLASS_IN);
  }
  for (const record of records) {
    pushName(bytes, record.name);
    pushUint16(bytes, DNS_TYPES[record.type]);
    pushUint16(bytes, CLASS_IN | (record.isUnique ? TOP_BIT : 0));
    pushUint16(bytes, record.ttlSeconds >>> 16);
    pushUint16(bytes, record.ttlSeconds & 0xffff);
    const data = recordBytes(record);
    pushUint16(bytes, data.length);
    bytes.push(...data);
  }
  return new Uint8Array(bytes);
}

function recordBytes(record: DnsRecord): number[] {
  const bytes: number[] = [];
  if (record.type === "A") bytes.push(...record.address.split(".").map(Number));
  else if (record.type === "PTR") pushName(bytes, record.target);
  else if (record.type === "SRV") {
    for (const value of [0, 0, record.port]) pushUint16(bytes, value);
    pushName(bytes, record.target);
  } else {
    for (const string of record.strings) pushString(bytes, string, 255);
    // A TXT record must not be empty (RFC 6763, section 6.1).
    if (record.strings.length === 0) bytes.push(0);
  }
  return bytes;
}

function pushName(bytes: number[], name: DnsName): void {
  const from = bytes.length;
  for (const label of name) pushString(bytes, new TextEncoder().encode(label), MAX_LABEL_BYTES);
  bytes.push(0);
  if (bytes.length - from > MAX_NAME_BYTES) throw new RangeError("a name is too long");
}

function pushString(bytes: number[], string: Uint8Array, mostBytes: number): void {
  if (string.length > mostBytes || (string.length === 0 && mostBytes === MAX_LABEL_BYTES)) {
    throw new RangeError("a label or a string does not fit");
  }
  bytes.push(string.length, ...string);
}

function pushUint16(bytes: number[], value: number): void {
  bytes.push(value >>> 8, value & 0xff);
}
