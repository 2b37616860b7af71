/** Agents on other hosts, as the API gives them. */

import type { components } from '../api/schema';

export type Agent = components['schemas']['Agent'];
