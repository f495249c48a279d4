import { defineConfig } from "vite";

// One file: ComfyUI imports every .js below WEB_DIRECTORY, so a chunk would be run as an extension.
export default defineConfig({
  build: {
    outDir: "dist",
    emptyOutDir: false, // dist/docs holds the nodes' help pages
    copyPublicDir: false,
    target: "es2022",
    minify: "esbuild",
    lib: { entry: "src/main.ts", formats: ["es"], fileName: () => "lowpeak.js" },
    rollupOptions: {
      external: (id: string) => /\/scripts\/(app|api)\.js$/.test(id),
      makeAbsoluteExternalsRelative: false,
      output: { inlineDynamicImports: true },
    },
  },
});
