// What is built is committed, so it has to be the same on every machine, and a text file like others.
import { defineConfig, type Plugin } from "vite";

// `cargo xtask tidy` looks at committed texts: they end with a newline, and no line ends with a blank.
const tidy: Plugin = {
  name: "tidy",
  enforce: "post",
  generateBundle(_options, bundle) {
    for (const file of Object.values(bundle)) {
      if (file.type === "chunk") file.code = tidied(file.code);
      else if (typeof file.source === "string") file.source = tidied(file.source);
    }
  },
};

function tidied(text: string): string {
  return text.replace(/[ \t\r]+$/gm, "").trimEnd() + "\n";
}

export default defineConfig({
  plugins: [tidy],
  build: {
    outDir: "dist",
    emptyOutDir: true,
    target: "es2022",
    // Browsers of 2024 know light-dark(); rewriting it for older ones would double the palette.
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    // The content security policy allows no data: script and no inline one.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    reportCompressedSize: false,
  },
});
