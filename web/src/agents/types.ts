/** Agents on other hosts, as the API gives them. */
export interface Agent {
  name: string;
  address: string | null;
  fingerprint: string;
  enrolled: string;
  /** Whether it answers now; missing if it was not asked. */
  reachable?: boolean;
  /** Why it does not answer. */
  unreachable?: string;
  /** What it says of itself. */
  status?: Record<string, unknown> | null;
}
