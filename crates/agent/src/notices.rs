//! What somebody should know of an agent: kept for its status, and told where the daemon's owner looks.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use trunkline_control::facts::Notice;

/// So many are kept.
const MOST: usize = 50;

/// Takes the lines of an agent's log.
pub type Log = Box<dyn Fn(&str) + Send + Sync>;

/// The notices of an agent, and its log.
pub(crate) struct Notices {
    kept: Mutex<VecDeque<Notice>>,
    log: Log,
}

impl Notices {
    pub(crate) fn new(log: Log) -> Notices {
        Notices { kept: Mutex::default(), log }
    }

    /// Something that somebody should know: it stands in the status until newer ones have taken its place.
    pub(crate) fn tell(&self, text: impl Into<String>) {
        let text = text.into();
        self.log(&text);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // What is said again takes no more room.
        if let Some(same) = kept.back_mut().filter(|last| last.text == text) {
            same.at = Timestamp::now();
            return;
        }
        if kept.len() >= MOST {
            kept.pop_front();
        }
        kept.push_back(Notice { at: Timestamp::now(), text });
    }

    /// What is as it should be.
    pub(crate) fn log(&self, text: &str) {
        (self.log)(text);
    }

    /// The latest, the oldest first.
    pub(crate) fn latest(&self) -> Vec<Notice> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Notices").field(&self.latest()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_kept() {
        let notices = Notices::new(Box::new(|_| {}));
        (0..MOST + 3).for_each(|n| notices.tell(n.to_string()));
        let texts: Vec<String> = notices.latest().into_iter().map(|notice| notice.text).collect();
        assert_eq!((texts.len(), texts[0].as_str(), texts[MOST - 1].as_str()), (MOST, "3", "52"));
        (0..MOST).for_each(|_| notices.tell("again"));
        let texts: Vec<String> = notices.latest().into_iter().map(|notice| notice.text).collect();
        assert_eq!(
            (texts[0].as_str(), texts[MOST - 2].as_str(), texts[MOST - 1].as_str()),
            ("4", "52", "again")
        );
    }
}
