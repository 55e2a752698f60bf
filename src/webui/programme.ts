/** Programmes as the engine's methods return them. */

/** A programme of a guide. Unix seconds. */
export interface ApiProgramme {
  readonly start: number;
  readonly stop: number;
  readonly title: string;
  readonly subtitle: string;
  readonly description: string;
  readonly categories: readonly string[];
  readonly episode: string;
  readonly year: number | null;
}

/** What is on, and what is next. */
export interface Epg {
  readonly now: ApiProgramme | null;
  readonly next: ApiProgramme | null;
}
