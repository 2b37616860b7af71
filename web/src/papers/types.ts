/** Published studies, as the API gives them. */

import type { components } from '../api/schema';

type Schemas = components['schemas'];

export type Paper = Schemas['Paper'];
export type PaperTable = Schemas['PaperTable'];
export type PaperCell = Schemas['PaperCell'];
export type PaperClass = Schemas['PaperClass'];
export type Study = Schemas['Study'];
export type PaperRealTime = Schemas['PaperRealTime'];
export type NewStudy = Schemas['NewStudy'];
