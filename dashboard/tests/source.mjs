// Loads a module of the page's TypeScript, for tests that need no browser.
import { fileURLToPath } from "node:url";
import { runnerImport } from "vite";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

export async function source(path) {
  return (await runnerImport(`${ROOT}src/${path}`, { root: ROOT, configFile: false, logLevel: "error" })).module;
}
