//! What somebody should know of an agent: kept for its status, and told where the daemon's owner looks.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use jiff::Timestamp;
use trunkline_control::Fingerprint;
use trunkline_control::facts::Notice;

/// So many are kept.
const MOST: usize = 50;

/// Who may read a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// The owner of the host only.
    Owner,
    /// The owner, and a controller.
    Controller(Fingerprint),
    /// Every controller too.
    All,
}

/// Takes the lines of an agent's log.
pub type Log = Box<dyn Fn(&str) + Send + Sync>;

/// So many lines of strangers are logged at once, and one more every second.
const STRANGERS: u64 = 20;

/// The notices of an agent, and its log.
pub(crate) struct Notices {
    kept: Mutex<VecDeque<(Notice, Audience)>>,
    log: Log,
    strangers: Mutex<Strangers>,
}

/// Lines about strangers, who decide how many there are.
struct Strangers {
    /// How many more may be logged.
    left: u64,
    /// Since when that has been counted.
    since: Instant,
    omitted: u64,
}

impl Notices {
    pub(crate) fn new(log: Log) -> Notices {
        let strangers = Strangers { left: STRANGERS, since: Instant::now(), omitted: 0 };
        Notices { kept: Mutex::default(), log, strangers: Mutex::new(strangers) }
    }

    /// Adds a notice for the owner. It stays in the status until newer ones have taken its place.
    pub(crate) fn tell(&self, text: impl Into<String>) {
        self.tell_to(Audience::Owner, text);
    }

    /// Adds a notice for the owner and this audience.
    pub(crate) fn tell_to(&self, audience: Audience, text: impl Into<String>) {
        let text = text.into();
        self.log(&text);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // What is said again takes no more room.
        if let Some((same, _)) = kept.back_mut().filter(|(last, to)| last.text == text && *to == audience) {
            same.at = Timestamp::now();
            return;
        }
        if kept.len() >= MOST {
            kept.pop_front();
        }
        kept.push_back((Notice { at: Timestamp::now(), text }, audience));
    }

    /// What is as it should be.
    pub(crate) fn log(&self, text: &str) {
        (self.log)(text);
    }

    /// What a stranger has brought about: a few lines of many.
    pub(crate) fn log_of_stranger(&self, text: &str) {
        let omitted = {
            let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
            let passed = strangers.since.elapsed().as_secs();
            if passed > 0 {
                strangers.left = STRANGERS.min(strangers.left + passed);
                strangers.since = Instant::now();
            }
            if strangers.left == 0 {
                strangers.omitted += 1;
                return;
            }
            strangers.left -= 1;
            std::mem::take(&mut strangers.omitted)
        };
        if omitted > 0 {
            self.log(&format!("{omitted} unauthenticated connections are not in this log"));
        }
        self.log(text);
    }

    /// The latest notices, the oldest first: all of them, or those for a controller.
    pub(crate) fn latest(&self, controller: Option<&Fingerprint>) -> Vec<Notice> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_for = |audience: &Audience| match (controller, audience) {
            (None, _) | (_, Audience::All) => true,
            (Some(_), Audience::Owner) => false,
            (Some(controller), Audience::Controller(to)) => controller == to,
        };
        kept.iter().filter(|(_, to)| is_for(to)).map(|(notice, _)| notice.clone()).collect()
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Notices").field(&self.latest(None)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_do_not_fill_the_log() {
        let (say, said) = std::sync::mpsc::channel();
        let notices = Notices::new(Box::new(move |text: &str| say.send(text.to_owned()).unwrap_or_default()));
        (0..10_000).for_each(|n| notices.log_of_stranger(&n.to_string()));
        let before = said.try_iter().count() as u64;
        assert!((STRANGERS..STRANGERS + 20).contains(&before), "{before}");
        notices.strangers.lock().unwrap().since -= std::time::Duration::from_secs(5);
        notices.log_of_stranger("the next");
        let lines: Vec<String> = said.try_iter().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].ends_with(" unauthenticated connections are not in this log"), "{lines:?}");
    }

    #[test]
    fn the_latest_are_kept() {
        let notices = Notices::new(Box::new(|_| {}));
        (0..MOST + 3).for_each(|n| notices.tell(n.to_string()));
        let texts: Vec<String> = notices.latest(None).into_iter().map(|notice| notice.text).collect();
        assert_eq!((texts.len(), texts[0].as_str(), texts[MOST - 1].as_str()), (MOST, "3", "52"));
        (0..MOST).for_each(|_| notices.tell("again"));
        let texts: Vec<String> = notices.latest(None).into_iter().map(|notice| notice.text).collect();
        assert_eq!(
            (texts[0].as_str(), texts[MOST - 2].as_str(), texts[MOST - 1].as_str()),
            ("4", "52", "again")
        );
    }
}
