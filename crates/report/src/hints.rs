//! Hints at settings that held a flow back where the network would have carried more.

use trunkline_core::Bytes;
use trunkline_metrics::LimitedBy;
use trunkline_store::StoredPoint;

use crate::view::{Side, View, point_name};

/// A sentence for every flow and limit, which names the first point at which it was found and counts the others.
pub(crate) fn of(view: &View, side: &Side) -> Vec<String> {
    let mut found: Vec<Found> = Vec::new();
    for point in view.points() {
        for flow in &view.flows {
            let summaries = side.flow(point.index, flow);
            let Some(limit) = summaries.iter().find_map(|summary| summary.limited_by.as_ref()) else {
                continue;
            };
            let known = found.iter_mut().find(|known| {
                known.flow == *flow && known.limit.option == limit.option && known.limit.bytes == limit.bytes
            });
            match known {
                Some(known) => known.others += 1,
                None => found.push(Found { flow, limit, first: point, others: 0 }),
            }
        }
    }
    found.iter().map(|found| found.sentence(view)).collect()
}

struct Found<'v> {
    flow: &'v str,
    limit: &'v LimitedBy,
    first: &'v StoredPoint,
    others: u32,
}

impl Found<'_> {
    fn sentence(&self, view: &View) -> String {
        let LimitedBy { option, bytes, round_trip, at_most, enough } = self.limit;
        let place = match (view.is_swept(), self.others) {
            (false, _) => String::new(),
            (true, 0) => format!(" at {}", point_name(self.first, view.axes())),
            (true, 1) => format!(" at {} and one other point", point_name(self.first, view.axes())),
            (true, n) => format!(" at {} and {n} other points", point_name(self.first, view.axes())),
        };
        let more = match enough {
            Some(enough) => {
                let kib = Bytes(enough.count().next_multiple_of(1024));
                format!("; the path would carry more with a `{option}` of {kib} or more")
            }
            None => String::new(),
        };
        format!(
            "`{}` is limited by its transport's `{option}` of {bytes}{place}: it lets {at_most} through per round trip of \
             {round_trip}{more}.",
            self.flow
        )
    }
}
