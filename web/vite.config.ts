import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

// In development the API comes from `trunkline serve`, or from the mock (`npm run mock`): both at this address by default.
const api = process.env.TRUNKLINE_API ?? 'http://127.0.0.1:4790';

export default defineConfig({
  base: './',
  plugins: [svelte()],
  build: {
    // The checks build into another folder, to compare.
    outDir: process.env.TRUNKLINE_DIST ?? 'dist',
    emptyOutDir: true,
    target: 'es2023',
    // Everything as a file: the server's content security policy allows no data: addresses.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    // For scripts/sizes.mjs, which takes it away again.
    manifest: true,
    chunkSizeWarningLimit: 700,
  },
  server: {
    host: '127.0.0.1',
    // The server judges Host and Origin; both must then be its own.
    proxy: { '/api': { target: api, changeOrigin: true, headers: { origin: api } } },
  },
  test: { include: ['tests/**/*.test.ts'] },
});
