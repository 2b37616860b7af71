import { describe, expect, test } from 'vitest';
import { match } from '../src/router.svelte';
import { described, extent, lowerBound, padded } from '../src/ui/chart';
import { figure, quantity, scaled, span } from '../src/ui/format';
import { sorted } from '../src/ui/table';

describe('figures', () => {
  test.each([
    [0.0123, 's', '12.3\u202fms'],
    [59, 's', '59.0\u202fs'],
    [1594000, 'bit/s', '1.59\u202fMbit/s'],
    [0, 's', '0\u202fs'],
    [0.5, 'B', '0.500\u202fB'],
    [0.0093, 'ratio', '0.930\u202f%'],
    [-0.002, 's', '\u22122.00\u202fms'],
    [999.96, 'B', '1.00\u202fkB'],
    [4.2, '', '4.20'],
  ])('%d %s is %s', (value, unit, text) => {
    expect(quantity(value, unit)).toBe(text);
  });

  test('nothing is a dash', () => {
    expect(quantity(null, 's')).toBe('–');
    expect(quantity(Number.NaN, 's')).toBe('–');
    expect(figure(Infinity)).toBe('–');
  });

  test('a unit fits the largest value', () => {
    expect(scaled(0.25, 's')).toEqual({ factor: 1e-3, unit: 'ms' });
    expect(scaled(2.5e9, 'bit/s')).toEqual({ factor: 1e9, unit: 'Gbit/s' });
    expect(scaled(90, 's')).toEqual({ factor: 1, unit: 's' });
  });

  test('spans of time', () => {
    expect(span(45)).toBe('45\u202fs');
    expect(span(200)).toBe('3\u202fmin 20\u202fs');
    expect(span(239.9)).toBe('4\u202fmin');
    expect(span(4000)).toBe('67\u202fmin');
    expect(span(9000)).toBe('2\u202fh 30\u202fmin');
  });
});

describe('routes', () => {
  const patterns = ['/runs', '/runs/:id', '/compare/:a/:b'];
  test('parts of an address are found', () => {
    expect(match(patterns, '#/runs')?.pattern).toBe('/runs');
    expect(match(patterns, '#/runs/12?tab=figures')).toMatchObject({ pattern: '/runs/:id', params: { id: '12' } });
    expect(match(patterns, '#/runs/12?tab=figures')?.query.get('tab')).toBe('figures');
    expect(match(patterns, '#/compare/1/a%2Fb')?.params).toEqual({ a: '1', b: 'a/b' });
  });
  test('what is none is none', () => {
    expect(match(patterns, '#/nowhere')).toBeUndefined();
    expect(match(patterns, '#/runs/%E0')).toBeUndefined();
    expect(match(patterns, '')).toBeUndefined();
  });
});

describe('tables', () => {
  const rows = [{ v: 3 }, { v: null }, { v: 1 }, { v: 2 }];
  test('sort both ways, with nothing last', () => {
    expect(sorted(rows, (row) => row.v, false).map((row) => row.v)).toEqual([1, 2, 3, null]);
    expect(sorted(rows, (row) => row.v, true).map((row) => row.v)).toEqual([3, 2, 1, null]);
    expect(sorted(rows, undefined, true)).toBe(rows);
  });
});

describe('charts', () => {
  test('ranges leave out what cannot be shown', () => {
    expect(extent([[1, null, NaN, 5], [-2, 3]], false)).toEqual({ min: -2, max: 5 });
    expect(extent([[1, 0, 5], [-2, 3]], true)).toEqual({ min: 1, max: 5 });
    expect(extent([[], [NaN]], false)).toBeUndefined();
  });
  test('an axis is never empty', () => {
    const axis = { label: '', unit: '' };
    for (const range of [undefined, { min: 0, max: 0 }, { min: 7, max: 7 }, { min: -3, max: -3 }]) {
      for (const side of ['x', 'y'] as const) {
        const shown = padded(range, axis, side);
        expect(shown.max).toBeGreaterThan(shown.min);
      }
    }
    expect(padded({ min: 0.001, max: 1 }, axis, 'y').min).toBe(0);
  });
  test('the first index is found', () => {
    expect(lowerBound([1, 2, 2, 5], 2)).toBe(1);
    expect(lowerBound([1, 2, 2, 5], 6)).toBe(4);
    expect(lowerBound([], 6)).toBe(0);
  });
  test('a series is described', () => {
    expect(described({ label: 'a', kind: 'line', x: [0, 1, 2], y: [5, NaN, 1] })).toMatchObject({ min: 1, max: 5, count: 3 });
    expect(described({ label: 'a', kind: 'line', x: [], y: [] })).toBeUndefined();
  });
});
