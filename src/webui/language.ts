/** The page's language: loads its catalogue. */
import { BASE } from "./engine.ts";
import { setLanguage } from "./texts.ts";
import { EN, type Texts } from "./texts/en.ts";

/** Takes the catalogue of a language from the engine, and returns which it is then: English if it cannot be had. */
export async function loadLanguage(chosen: string): Promise<string> {
  if (chosen === "en") return chosen;
  const response = await fetch(`${BASE}/webui/texts/${chosen}.json`).catch(() => null);
  const catalogue = response?.ok ? await response.json().catch(() => null) as Texts | null : null;
  if (catalogue === null) return "en";
  // A page that is newer than the engine may know a text that the catalogue lacks.
  setLanguage(chosen, { ...EN, ...catalogue });
  return chosen;
}
