// Writes the types of the API: those of its objects, which the page uses, not those of its addresses.
import { readFileSync, writeFileSync } from 'node:fs';
import openapiTS, { astToString, COMMENT_HEADER } from 'openapi-typescript';

const document = JSON.parse(readFileSync(new URL('../../crates/server/openapi.json', import.meta.url), 'utf8'));
writeFileSync(new URL('../src/api/schema.d.ts', import.meta.url), COMMENT_HEADER + astToString(await openapiTS({ ...document, paths: {} })));
