// The build output is committed, so it must be the same on every machine, and a valid text file.
import { defineConfig, type Plugin } from "vite";

// `cargo xtask tidy` checks committed texts: they end with a newline, and lines have no trailing space.
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
    // Browsers since 2024 support light-dark(); converting it for older ones would double the palette.
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    // The content security policy allows neither data: scripts nor inline scripts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    reportCompressedSize: false,
  },
});
