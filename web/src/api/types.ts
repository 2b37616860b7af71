/**
 * The API's types under the names that the page uses. They come from the server's own types, by way of its OpenAPI document
 * (`npm run api`). Figures are in base SI units: seconds, bit/s, bytes.
 */
import type { components } from './schema';

type Schemas = components['schemas'];
type Replace<Type, Part> = Omit<Type, keyof Part> & Part;

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
/** A TOML table as it is written, in JSON. */
export type Tree = { [key: string]: Json };

export type Problem = Schemas['Problem'];
/** Where a key of the text stands. */
export type Place = Schemas['KeyPlace'];
export type Backend = Schemas['Backend'];
export type ServerInfo = Schemas['ServerInfo'];

export type Choice = Schemas['Choice'];
export type Shape = Schemas['FormShape'];
export type FormFigure = Schemas['FormFigure'];
export type FormKey = Schemas['FormKey'];
export type Medium = Schemas['FormMedium'];
export type FormSection = Schemas['FormSection'];
export type FormSchema = Schemas['FormSchema'];

export type Summary = Schemas['ExperimentSummary'];
export type NewPrediction = Schemas['NewPrediction'];
export type Prediction = Schemas['Prediction'];
export type CheckAnswer = Schemas['Checked'];

export type DrawnHost = Replace<Schemas['DrawingHost'], { keys: Tree }>;
export type DrawnLink = Replace<Schemas['DrawingLink'], { keys: Tree }>;
export type DrawnFlow = Replace<Schemas['DrawingFlow'], { keys: Tree }>;
export type DrawnBundle = Replace<Schemas['DrawingBundle'], { keys: Tree }>;
export type DrawnAxis = Replace<Schemas['DrawingAxis'], { values: Json[]; range?: Tree | null }>;
export type Drawing = Replace<
  Schemas['Drawing'],
  { hosts: DrawnHost[]; links: DrawnLink[]; flows: DrawnFlow[]; bundles: DrawnBundle[]; sweep: DrawnAxis[]; experiment: Tree }
>;
export type DrawingAnswer = Replace<Schemas['Drawn'], { drawing?: Drawing | null }>;
export type EditAnswer = Replace<Schemas['Edited'], { drawing?: Drawing | null }>;
export type Edit = Schemas['Edit'];
/** What a drawing has several of, by name. */
export type SectionName = Extract<Schemas['Section'], 'hosts' | 'link' | 'flow' | 'bundle'>;
export type Example = Schemas['Example'];

export type Job = Schemas['Job'];
export type Started = Schemas['RunStarted'];
export type Records = Schemas['Records'];
