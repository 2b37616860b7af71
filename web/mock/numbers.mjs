// Made-up numbers for the mock.

export function gaussian() {
  return Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
}

/** Latencies between two moments as the server sends them: 2000 buckets of four points, and some lost. */
export function latencyBlock(from, to) {
  const n = 8000;
  const m = 40;
  const bytes = new ArrayBuffer(9 + n * 12 + m * 8);
  const view = new DataView(bytes);
  view.setUint32(0, n, true);
  view.setUint8(4, to - from < 5 ? 1 : 0);
  for (let i = 0; i < n; i += 1) {
    const t = from + ((to - from) * i) / n;
    view.setFloat64(5 + i * 8, t, true);
    view.setFloat32(5 + n * 8 + i * 4, 0.052 + 0.01 * Math.sin(t / 9) ** 2 + Math.abs(gaussian()) * 0.004, true);
  }
  view.setUint32(5 + n * 12, m, true);
  for (let i = 0; i < m; i += 1) view.setFloat64(9 + n * 12 + i * 8, from + ((to - from) * (i + Math.random())) / m, true);
  return bytes;
}
