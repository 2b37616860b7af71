//! Limits and costs of this process.

use std::io;

use trunkline_core::Duration;

/// CPU time (user and system) of this process and of its children that have ended and were waited for.
pub fn cpu_time() -> Duration {
    usage(libc::RUSAGE_SELF) + usage(libc::RUSAGE_CHILDREN)
}

fn usage(of: libc::c_int) -> Duration {
    // SAFETY: all-zero bytes are a valid rusage, which the call fills in; it fails only for an unknown first argument.
    let usage = unsafe {
        let mut usage: libc::rusage = core::mem::zeroed();
        libc::getrusage(of, &mut usage);
        usage
    };
    let time =
        |t: libc::timeval| Duration::from_secs(t.tv_sec as u64) + Duration::from_micros(t.tv_usec as u64);
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// Raises the limit on open descriptors so far that `wanted` fit, up to the hard limit (root may raise that too). Says
/// how many are allowed now.
pub fn raise_open_files(wanted: u64) -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for the result.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur >= wanted {
        return Ok(limit.rlim_cur);
    }
    let hard = libc::rlimit { rlim_cur: wanted, rlim_max: limit.rlim_max.max(wanted) };
    let soft = libc::rlimit { rlim_cur: wanted.min(limit.rlim_max), rlim_max: limit.rlim_max };
    for asked in [hard, soft] {
        // SAFETY: `asked` is a valid limit; the call reads it only.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &asked) } == 0 {
            return Ok(asked.rlim_cur);
        }
    }
    Ok(limit.rlim_cur)
}

/// Has this process killed when the thread that started it ends, however that happens; one that was started from outside
/// its process namespace ends with that instead. Linux only; elsewhere, and if the parent is already gone, the end of
/// standard input has to tell.
pub fn die_with_parent() {
    #[cfg(target_os = "linux")]
    // A parent outside has the number 0 in here (pid_namespaces(7)), and may have started us on a passing thread.
    if std::os::unix::process::parent_id() != 0 {
        // SAFETY: PR_SET_PDEATHSIG takes one integer and touches no memory.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong, 0, 0, 0);
        }
    }
}

/// Lets the command start as a shell's job in the foreground: in a process group of its own, which has the terminal on
/// its standard input before the program's first instruction. A program that got the terminal only afterwards could ask
/// for it too early, be stopped for that, and lose a Ctrl-Z that came meanwhile: `SIGCONT` discards it.
pub fn start_in_foreground(command: &mut std::process::Command) {
    use std::os::unix::process::CommandExt as _;

    let take_terminal = || {
        // SAFETY: the set is initialised by the first call before it is read, and all of these calls are
        // async-signal-safe (signal-safety(7)), as is required between fork and exec.
        unsafe {
            let mut background: libc::sigset_t = core::mem::zeroed();
            let mut before: libc::sigset_t = core::mem::zeroed();
            libc::sigemptyset(&mut background);
            // Whoever does not have the terminal yet would be stopped.
            libc::sigaddset(&mut background, libc::SIGTTOU);
            libc::pthread_sigmask(libc::SIG_BLOCK, &background, &mut before);
            // An error means that there is no terminal any more.
            libc::tcsetpgrp(libc::STDIN_FILENO, libc::getpid());
            libc::pthread_sigmask(libc::SIG_SETMASK, &before, core::ptr::null_mut());
        }
        Ok(())
    };
    command.process_group(0);
    // SAFETY: the closure allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(take_terminal);
    }
}

/// Lets the calling thread run on this core only, counted from 0. Linux only; elsewhere it does nothing.
///
/// # Errors
/// If there is no such core, or this process may not use it.
pub fn pin_to_core(core: usize) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    // SAFETY: all-zero bytes are an empty set; the macro checks its index, and the call reads the set only.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if core >= 8 * size_of_val(&set) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        libc::CPU_SET(core, &mut set);
        if libc::sched_setaffinity(0, size_of_val(&set), &set) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    let _ = core;
    Ok(())
}

/// Schedules the calling thread in real time (`SCHED_FIFO`), before every ordinary thread; 1 is the lowest priority, 99 the
/// highest. Threads and processes that it starts are ordinary ones again. Linux only.
///
/// # Errors
/// If this process may not: without privileges, beyond its `RLIMIT_RTPRIO`.
pub fn run_in_real_time(priority: u8) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    // SAFETY: all-zero bytes are a valid parameter, which the call reads only.
    unsafe {
        let mut parameter: libc::sched_param = core::mem::zeroed();
        parameter.sched_priority = priority.into();
        if libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &parameter) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    #[cfg(not(target_os = "linux"))]
    if priority > 0 {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_grows() {
        let before = cpu_time();
        let mut sum = 0u64;
        while cpu_time() == before {
            for n in 0..100_000u64 {
                sum = core::hint::black_box(sum.wrapping_add(n));
            }
        }
        assert!(cpu_time() > before);
    }

    #[test]
    fn a_thread_stays_where_it_is_pinned() {
        assert!(pin_to_core(1 << 20).is_err() || cfg!(not(target_os = "linux")));
        let first = std::thread::spawn(|| {
            pin_to_core(0).map(|()| std::thread::available_parallelism().map_or(1, core::num::NonZero::get))
        });
        // A container may be kept from core 0.
        if let Ok(cores) = first.join().unwrap() {
            assert!(cores == 1 || cfg!(not(target_os = "linux")));
        }
    }

    #[test]
    fn a_thread_runs_in_real_time_or_is_told_that_it_may_not() {
        let asked = std::thread::spawn(|| run_in_real_time(100).unwrap_err());
        assert_ne!(
            asked.join().unwrap().kind(),
            io::ErrorKind::PermissionDenied,
            "there is no such priority"
        );
        if let Err(error) = std::thread::spawn(|| run_in_real_time(1)).join().unwrap() {
            assert!(
                matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported),
                "{error}"
            );
        }
    }

    #[test]
    fn enough_descriptors_are_left_alone() {
        let now = raise_open_files(1).unwrap();
        assert!(now >= 1);
        assert_eq!(raise_open_files(now).unwrap(), now);
    }
}
