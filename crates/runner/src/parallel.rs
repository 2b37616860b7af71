//! The one way in which work is spread over the cores.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Does `work` for every task on `jobs` threads. The results stand in the order of the tasks, however many threads there
/// are and whichever ends first; `None` is what was not begun because `stop` was set.
///
/// # Errors
/// The error of the first task, in the tasks' order, that failed. After a failure no task is begun.
pub fn in_parallel<T: Sync, R: Send, E: Send>(
    tasks: &[T],
    jobs: usize,
    stop: &AtomicBool,
    work: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<Option<R>>, E> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let results: Mutex<Vec<Option<Result<R, E>>>> = Mutex::new(tasks.iter().map(|_| None).collect());
    let take_tasks = || {
        while !stop.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed) {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = tasks.get(place) else { break };
            let result = work(task);
            if result.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            // A thread that panics ends the scope with its panic; what the others have measured is whole.
            results.lock().unwrap_or_else(PoisonError::into_inner)[place] = Some(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, tasks.len().max(1)) {
            scope.spawn(take_tasks);
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().map(Option::transpose).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_the_order_of_the_tasks() {
        let tasks: Vec<u32> = (0..100).collect();
        for jobs in [1, 3, 200] {
            let squares = in_parallel(&tasks, jobs, &AtomicBool::new(false), |n| Ok::<_, ()>(n * n));
            assert_eq!(squares, Ok(tasks.iter().map(|n| Some(n * n)).collect()));
        }
        assert_eq!(in_parallel(&[0; 0], 2, &AtomicBool::new(false), |_: &i32| Ok::<_, ()>(())), Ok(vec![]));
    }

    #[test]
    fn after_a_failure_or_a_stop_nothing_is_begun() {
        let begun = AtomicUsize::new(0);
        let stop = AtomicBool::new(false);
        let failing = in_parallel(&[1, 2, 3, 4], 1, &stop, |n| {
            begun.fetch_add(1, Ordering::Relaxed);
            if *n < 2 { Ok(*n) } else { Err(*n) }
        });
        assert_eq!((failing, begun.load(Ordering::Relaxed)), (Err(2), 2));
        let stopped = in_parallel(&[1, 2, 3], 1, &stop, |n| {
            stop.store(*n == 2, Ordering::Relaxed);
            Ok::<_, ()>(*n)
        });
        assert_eq!(stopped, Ok(vec![Some(1), Some(2), None]));
    }
}
