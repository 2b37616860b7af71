//! What watchers of a job are told. The job never waits for them: the newest events are kept, every watcher reads them at
//! its own pace, and whoever falls behind goes on with those that are still there.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::sync::watch;

/// So many events are kept that should not be missed.
const MOST_TOLD: usize = 1024;
/// So many batches of records are kept: twenty seconds of them, so that who comes later begins with a picture.
const MOST_RECORDS: usize = 200;
/// And no more of them than take so many bytes.
const MOST_RECORD_BYTES: usize = 4 << 20;

/// The events of a job.
#[derive(Debug)]
pub(crate) struct Feed {
    ring: Mutex<Ring>,
    /// Changes with every event, and whenever the job looks different.
    changed: watch::Sender<u64>,
    watchers: AtomicUsize,
}

#[derive(Debug, Default)]
struct Ring {
    next: u64,
    told: VecDeque<Arc<Event>>,
    records: VecDeque<Arc<Event>>,
    /// What the records take.
    record_bytes: usize,
}

/// An event.
#[derive(Debug)]
pub(crate) struct Event {
    /// Counts the events of its job, from 1.
    pub(crate) id: u64,
    /// Its name in the stream of events.
    pub(crate) name: &'static str,
    /// What it says: JSON.
    pub(crate) data: String,
}

/// A watcher; while it is there, live records are gathered.
#[derive(Debug)]
pub(crate) struct Watching {
    feed: Arc<Feed>,
    changed: watch::Receiver<u64>,
    /// The last event that it was given.
    last: u64,
}

impl Feed {
    pub(crate) fn new() -> Feed {
        Feed { ring: Mutex::default(), changed: watch::Sender::new(0), watchers: AtomicUsize::new(0) }
    }

    /// Whether somebody watches.
    pub(crate) fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::Relaxed) > 0
    }

    /// Tells what should not be missed.
    pub(crate) fn tell(&self, name: &'static str, what: &impl Serialize) {
        let Some((mut ring, event)) = self.next(name, what) else { return };
        ring.told.push_back(event);
        while ring.told.len() > MOST_TOLD {
            ring.told.pop_front();
        }
        drop(ring);
        self.stir();
    }

    /// Tells a batch of records.
    pub(crate) fn tell_records(&self, what: &impl Serialize) {
        let Some((mut ring, event)) = self.next("records", what) else { return };
        ring.record_bytes += event.data.len();
        ring.records.push_back(event);
        // The newest stays, however large it is.
        while ring.records.len() > MOST_RECORDS
            || (ring.record_bytes > MOST_RECORD_BYTES && ring.records.len() > 1)
        {
            let oldest = ring.records.pop_front();
            ring.record_bytes -= oldest.map_or(0, |oldest| oldest.data.len());
        }
        drop(ring);
        self.stir();
    }

    /// Forgets the records and repetitions of a job that has ended and has no watcher: they are in the store.
    pub(crate) fn forget(&self) {
        if !self.is_watched() {
            let mut ring = self.ring();
            ring.records = VecDeque::new();
            ring.record_bytes = 0;
            ring.told.retain(|event| event.name != "repetition");
            ring.told.shrink_to_fit();
        }
    }

    /// The job looks different.
    pub(crate) fn stir(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Watches from now on; with the number of the event that a client saw last, from there, as far as that is still known.
    /// Without it, from the first that is.
    pub(crate) fn watch(self: &Arc<Feed>, last: Option<u64>) -> Watching {
        self.watchers.fetch_add(1, Ordering::Relaxed);
        // What another job has counted says nothing here.
        let last = last.filter(|last| *last <= self.ring().next).unwrap_or(0);
        Watching { feed: Arc::clone(self), changed: self.changed.subscribe(), last }
    }

    /// The next event, for the ring.
    fn next(&self, name: &'static str, what: &impl Serialize) -> Option<(MutexGuard<'_, Ring>, Arc<Event>)> {
        // What is told here is made of numbers and texts.
        let data = serde_json::to_string(what).ok()?;
        let mut ring = self.ring();
        ring.next += 1;
        let event = Arc::new(Event { id: ring.next, name, data });
        Some((ring, event))
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watching {
    /// The events since the last time, the oldest first.
    pub(crate) fn news(&mut self) -> Vec<Arc<Event>> {
        self.changed.mark_unchanged();
        let ring = self.feed.ring();
        let is_new = |event: &&Arc<Event>| event.id > self.last;
        let mut news: Vec<Arc<Event>> =
            ring.told.iter().filter(is_new).chain(ring.records.iter().filter(is_new)).cloned().collect();
        drop(ring);
        news.sort_by_key(|event| event.id);
        self.last = news.last().map_or(self.last, |event| event.id);
        news
    }

    /// Waits for the next.
    pub(crate) async fn changed(&mut self) {
        // The job is there as long as its watcher.
        let _ = self.changed.changed().await;
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.feed.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(news: &[Arc<Event>]) -> Vec<(u64, &str)> {
        news.iter().map(|event| (event.id, event.name)).collect()
    }

    #[test]
    fn whoever_comes_back_goes_on_where_it_was() {
        let feed = Arc::new(Feed::new());
        feed.tell("warning", &1);
        let mut watching = feed.watch(None);
        assert_eq!(names(&watching.news()), [(1, "warning")]);
        feed.tell_records(&2);
        feed.tell("repetition", &3);
        assert_eq!(names(&watching.news()), [(2, "records"), (3, "repetition")]);
        assert!(watching.news().is_empty());
        drop(watching);
        assert_eq!(names(&feed.watch(Some(1)).news()), [(2, "records"), (3, "repetition")]);
        // What another server, or another job, has counted says nothing here.
        assert_eq!(names(&feed.watch(Some(77)).news()).len(), 3);
    }

    #[test]
    fn a_slow_watcher_is_told_the_newest_records_and_everything_else() {
        let feed = Arc::new(Feed::new());
        let mut slow = feed.watch(None);
        feed.tell("warning", &"early");
        for batch in 0..1000 {
            feed.tell_records(&batch);
        }
        let news = slow.news();
        assert_eq!(news.len(), 1 + MOST_RECORDS);
        assert_eq!(news[0].name, "warning");
        assert_eq!(news[MOST_RECORDS].data, "999");
    }

    #[test]
    fn whoever_comes_later_begins_with_a_picture_and_takes_nothing_from_others() {
        let feed = Arc::new(Feed::new());
        let mut early = feed.watch(None);
        for batch in 0..10 {
            feed.tell_records(&batch);
        }
        assert_eq!(feed.watch(None).news().len(), 10);
        assert_eq!(early.news().len(), 10);
        // Somebody watches: nothing is forgotten.
        feed.forget();
        assert_eq!(feed.watch(None).news().len(), 10);
        drop(early);
        feed.forget();
        assert!(feed.watch(None).news().is_empty());
    }

    #[test]
    fn a_job_that_has_ended_keeps_its_warnings_and_its_end() {
        let feed = Arc::new(Feed::new());
        feed.tell("warning", &"early");
        for repetition in 0..100 {
            feed.tell("repetition", &repetition);
        }
        feed.tell("end", &0);
        feed.forget();
        assert_eq!(names(&feed.watch(None).news()), [(1, "warning"), (102, "end")]);
    }

    #[test]
    fn records_take_bounded_room() {
        let feed = Arc::new(Feed::new());
        let large = "x".repeat(MOST_RECORD_BYTES / 4);
        for _ in 0..10 {
            feed.tell_records(&large);
        }
        let news = feed.watch(None).news();
        assert_eq!(news.len(), 3);
        assert_eq!(news.last().map(|event| event.id), Some(10));
        feed.tell_records(&"x".repeat(MOST_RECORD_BYTES * 2));
        assert_eq!(feed.watch(None).news().len(), 1);
    }

    #[test]
    fn watchers_are_counted() {
        let feed = Arc::new(Feed::new());
        assert!(!feed.is_watched());
        let (one, two) = (feed.watch(None), feed.watch(Some(0)));
        drop(one);
        assert!(feed.is_watched());
        drop(two);
        assert!(!feed.is_watched());
    }
}
