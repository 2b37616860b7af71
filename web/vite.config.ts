import { svelte } from '@sveltejs/vite-plugin-svelte';
import { build, type Plugin, type UserConfig } from 'vite';
import { defineConfig } from 'vitest/config';

// In development the API comes from `trunkline serve`, or from the mock (`npm run mock`): both at this address by default.
const api = process.env.TRUNKLINE_API ?? 'http://127.0.0.1:4790';

/** Says nothing of how long each plugin takes. */
const checks = { pluginTimings: false };
const common = { target: 'es2023', reportCompressedSize: false } satisfies UserConfig['build'];

/** Builds the page of a saved file beside the page: one script and one style sheet, which the server puts into the file. */
function savedFile(): Plugin {
  let outDir = '';
  return {
    name: 'saved-file',
    apply: 'build',
    configResolved: (config) => void (outDir = config.build.outDir),
    closeBundle: async () =>
      void (await build({
        configFile: false,
        logLevel: 'warn',
        plugins: [svelte()],
        build: {
          ...common,
          outDir,
          emptyOutDir: false,
          copyPublicDir: false,
          cssCodeSplit: false,
          rolldownOptions: { input: 'src/saved.ts', checks, output: { codeSplitting: false, entryFileNames: 'saved.js', assetFileNames: 'saved[extname]' } },
        },
      })),
  };
}

export default defineConfig({
  base: './',
  plugins: [svelte(), savedFile()],
  build: {
    ...common,
    // The checks build into another folder, to compare.
    outDir: process.env.TRUNKLINE_DIST ?? 'dist',
    emptyOutDir: true,
    // Everything as a file: the server's content security policy allows no data: addresses.
    assetsInlineLimit: 0,
    rolldownOptions: { checks },
    // For scripts/sizes.mjs, which takes it away again.
    manifest: true,
    chunkSizeWarningLimit: 700,
  },
  server: {
    host: '127.0.0.1',
    // The server judges Host and Origin; both must then be its own.
    proxy: { '/api': { target: api, changeOrigin: true, headers: { origin: api } } },
  },
  // No test judges how fast a machine is that does other things meanwhile.
  test: { include: ['tests/**/*.test.ts'], testTimeout: 60_000 },
});
