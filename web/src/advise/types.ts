/** Advice and plans, as the API gives them. Figures are in base SI units. */

import type { components } from '../api/schema';

type Schemas = components['schemas'];

export type Advice = Schemas['AdviceResult'];
export type Recommendation = Schemas['Recommendation'];
export type Judgement = Schemas['Judgement'];
export type Blocks = Schemas['AdviceBlocks'];
export type Protection = Schemas['Protection'];
export type Measured = Schemas['AdviceRow'];

export type Plan = Schemas['PlanResult'];
export type Answer = Schemas['PlanAnswer'];
export type Trial = Schemas['PlanTrial'];
export type Verdict = Schemas['PlanVerdict'];
