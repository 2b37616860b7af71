/** Answers of the API about runs, under the names that these pages use. Figures are in base SI units. */

import type { components } from '../api/schema';

type Schemas = components['schemas'];

export type Status = Schemas['Status'];
export type RunInfo = Schemas['RunInfo'];
export type RunList = Schemas['RunList'];
export type Run = Schemas['Run'];
export type RunPoint = Schemas['RunPoint'];
export type RunRepetition = Schemas['RunRepetition'];
export type Axis = Schemas['Axis'];
export type Cdf = Pick<Schemas['Cdf'], 'p' | 'value'>;
export type Imported = Schemas['Imported'];
export type OverTime = Schemas['OverTime'];
export type Pieces = Schemas['Pieces'];
export type Moment = Schemas['Moment'];
export type Rewind = Schemas['Rewind'];
export type RewoundEvent = Schemas['RewoundEvent'];

export type Report = Schemas['Report'];
export type ReportLimit = Schemas['ReportLimit'];
export type ReportPoint = Schemas['ReportPoint'];
export type ReportSide = Schemas['ReportSide'];
export type ReportFlow = Schemas['ReportFlow'];
export type ReportStalls = Schemas['ReportStalls'];
export type ReportLink = Schemas['ReportLink'];
export type Figures = ReportFlow['figures'];
export type FigureDefinition = Schemas['FigureDefinition'];
export type FigureName = Schemas['FigureName'];
export type Outcome = Schemas['LimitOutcome'];

export type Definition = Schemas['Definition'];
export type Comparison = Schemas['Comparison'];
export type ComparisonRow = Schemas['ComparisonRow'];
