import { describe, expect, test } from 'vitest';
import { number, show, showEstimate, signedShare } from '../src/results/quantity';

describe('numbers', () => {
  test.each([
    [0, '0'],
    [51.5, '51.5'],
    [1594, '1594'],
    [12345678, '12\u202f345\u202f678'],
    [0.00123456, '0.001235'],
    [1e-9, '1e-9'],
    [-0.25, '-0.25'],
    [9.99996, '10'],
    [1000, '1000'],
    [Number.NaN, '–'],
  ])('%s keeps the digits that mean something', (value, text) => {
    expect(number(value)).toBe(text);
  });

  test('units follow the value', () => {
    expect(show('time', 125e-6)).toBe('125 µs');
    expect(show('time', 31)).toBe('31 s');
    expect(show('rate', 1_594_000)).toBe('1594 kbit/s');
    expect(show('rate', 2e8)).toBe('200 Mbit/s');
    expect(show('bytes', 65536)).toBe('64 KiB');
    expect(show('time', -0.002)).toBe('-2 ms');
    expect(show('count', 12345)).toBe('12\u202f345');
    expect(show('time', null)).toBe('–');
  });

  test('a mean has the digits of its confidence interval', () => {
    expect(showEstimate('time', { mean: 0.051536, ci95: 0.00043 })).toBe('51.54 ± 0.43 ms');
    expect(showEstimate('rate', { mean: 63997, ci95: 150 })).toBe('64.00 ± 0.15 kbit/s');
    expect(showEstimate('time', { mean: 0.0515, ci95: null })).toBe('51.5 ms');
    expect(showEstimate('share', { mean: 0, ci95: 0 })).toBe('0 %');
    expect(showEstimate('time', { mean: 0.0123, ci95: 1.2 })).toBe('12 ± 1200 ms');
    expect(showEstimate('time', undefined)).toBe('–');
  });

  test('shares have a sign', () => {
    expect(signedShare(0.042)).toBe('+4.2 %');
    expect(signedShare(-0.0031)).toBe('−0.31 %');
    expect(signedShare(1.2345)).toBe('+123 %');
    expect(signedShare(0)).toBe('0 %');
    expect(signedShare(null)).toBe('–');
  });
});
