//! Builds a kernel from Debian's source of Linux: User-Mode Linux with time travel, virtio, and random numbers of a seed.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::console::last_lines;
use crate::named::is_name;

/// Debian's source.
const SOURCE: &str = "/usr/src/linux-source-6.1.tar.xz";

/// Prefix of the folders in which kernels are built, beside the kernels.
const BUILDS: &str = ".build-";

/// The programs that build it.
const TOOLS: &[&str] = &["tar", "xz", "make", "gcc", "flex", "bison", "bc"];

/// The Debian packages with the source and all that builds it.
const PACKAGES: &str = "linux-source-6.1 build-essential flex bison bc libelf-dev libssl-dev xz-utils";

/// Changes to the source: a file, a text of it, and its replacement.
const CHANGES: &[(&str, &str, &str)] = &[
    // Random numbers are those of a seed if there is one, not those of this machine.
    ("arch/um/os-Linux/util.c", "\treturn getrandom(buf, len, flags);\n", include_str!("build/random.c")),
    // Timers count 250 jiffies a second, as Debian's kernels do, not 100.
    ("arch/um/Kconfig", "config HZ\n\tint\n\tdefault 100\n", "config HZ\n\tint\n\tdefault 250\n"),
];

/// Options of the kernel, beside the defaults of its architecture.
const OPTIONS: &str = include_str!("build/options.config");

/// The output of the current step, in the folder in which the kernel is built.
const LOG: &str = ".trunkline-log";

/// Interval in which a step is checked for its end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Why a kernel cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Not a name: bad input.
    #[error(
        "`{0}` cannot be the name of a kernel; expected letters, digits, `.`, `-` and `_`, beginning with a letter or digit"
    )]
    Name(String),
    /// Another architecture.
    #[error("no kernel can be built on this machine: User-Mode Linux needs x86-64; use another machine")]
    Machine,
    /// Programs or the source are missing.
    #[error("no kernel can be built without {}; install them with `sudo apt-get install {PACKAGES}`", .0.join(", "))]
    Missing(Vec<String>),
    /// Linux is not built in such a folder.
    #[error(
        "Linux cannot be built below `{}`, since the path has a space or a colon; set XDG_DATA_HOME to another folder",
        .0.display()
    )]
    Folder(PathBuf),
    /// The source is another one.
    #[error("`{}` is not that of Linux 6.1; install Debian's linux-source-6.1 again", .0.display())]
    Source(PathBuf),
    /// A step failed.
    #[error("`{step}` failed; its output ends with:\n{output}\nneeded are the Debian packages {PACKAGES}")]
    Step {
        /// Its command.
        step: String,
        /// The end of its output.
        output: String,
    },
    /// A file cannot be read or written, or a program not be started.
    #[error("`{}`: {error}", .path.display())]
    System {
        /// The file or program.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The user stopped it.
    #[error("the build was stopped; nothing is kept of it")]
    Stopped,
}

impl BuildError {
    /// True if the user gave a wrong name.
    pub fn is_bad_input(&self) -> bool {
        matches!(self, BuildError::Name(_))
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> BuildError + use<> {
    let path = path.to_path_buf();
    move |error| BuildError::System { path, error }
}

/// Builds a kernel and puts it into the folder of named kernels; replaces one with this name. `progress` is called with each
/// command before it runs. Once `stop` is true, the build ends and leaves nothing.
///
/// # Errors
/// If the name is not one, something is missing, or a step fails.
pub fn build(
    folder: &Path,
    name: &str,
    progress: &dyn Fn(&str),
    stop: &AtomicBool,
) -> Result<PathBuf, BuildError> {
    if !is_name(name) {
        return Err(BuildError::Name(name.to_owned()));
    }
    if !cfg!(target_arch = "x86_64") {
        return Err(BuildError::Machine);
    }
    let missing = missing(Path::new(SOURCE));
    if !missing.is_empty() {
        return Err(BuildError::Missing(missing));
    }
    if folder.display().to_string().contains([' ', ':']) {
        return Err(BuildError::Folder(folder.to_path_buf()));
    }
    build_from(Path::new(SOURCE), folder, name, progress, stop)
}

/// The programs that are not in the path, and the source if it is not there.
fn missing(source: &Path) -> Vec<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_missing = |tool: &&&str| !std::env::split_paths(&path).any(|folder| folder.join(tool).is_file());
    let tools = TOOLS.iter().filter(is_missing).map(|tool| (*tool).to_owned());
    let source = (!source.exists()).then(|| source.display().to_string());
    source.into_iter().chain(tools).map(|thing| format!("`{thing}`")).collect()
}

/// Builds the kernel of a source, without a look at what the machine has.
fn build_from(
    source: &Path,
    folder: &Path,
    name: &str,
    progress: &dyn Fn(&str),
    stop: &AtomicBool,
) -> Result<PathBuf, BuildError> {
    fs::create_dir_all(folder).map_err(at(folder))?;
    let (_lock, place) = place(folder).map_err(at(folder))?;
    let steps = Steps { folder: place.path(), progress, stop };
    steps.run(Command::new("tar").args(["--strip-components=1", "-xf"]).arg(source))?;
    for (file, old, new) in CHANGES {
        let file = place.path().join(file);
        let text = fs::read_to_string(&file).map_err(at(&file))?;
        if !text.contains(old) {
            return Err(BuildError::Source(file));
        }
        fs::write(&file, text.replacen(old, new, 1)).map_err(at(&file))?;
    }
    let make = |arguments: &[&str]| {
        // The job server of a `make` above this program is not for this one.
        steps.run(Command::new("make").env_remove("MAKEFLAGS").arg("ARCH=um").args(arguments))
    };
    make(&["--silent", "defconfig"])?;
    let config = place.path().join(".config");
    let mut options = fs::read_to_string(&config).map_err(at(&config))?;
    // Of an option that stands there twice, the last counts.
    options.push_str(OPTIONS);
    fs::write(&config, options).map_err(at(&config))?;
    make(&["--silent", "olddefconfig"])?;
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    make(&["--silent", &format!("--jobs={jobs}"), "linux"])?;
    let kernel = folder.join(name);
    fs::rename(place.path().join("linux"), &kernel).map_err(at(&kernel))?;
    // A folder that cannot be removed is in nobody's way, but large.
    place.close().map_err(at(folder))?;
    Ok(kernel)
}

/// A folder to build in, locked until the file is dropped. Those of builds that were killed, which nobody locks, are removed.
fn place(folder: &Path) -> io::Result<(File, TempDir)> {
    // Nobody removes a folder between its creation and its lock.
    let all = File::open(folder)?;
    all.lock()?;
    for entry in fs::read_dir(folder)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(BUILDS)
            && File::open(entry.path()).is_ok_and(|left| left.try_lock().is_ok())
        {
            // One that another user left stays.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let place = tempfile::Builder::new().prefix(BUILDS).tempdir_in(folder)?;
    let lock = File::open(place.path())?;
    lock.lock()?;
    Ok((lock, place))
}

/// Runs the steps of a build.
struct Steps<'b> {
    folder: &'b Path,
    progress: &'b dyn Fn(&str),
    stop: &'b AtomicBool,
}

impl Steps<'_> {
    fn run(&self, command: &mut Command) -> Result<(), BuildError> {
        let words = [command.get_program()].into_iter().chain(command.get_args());
        let step = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        (self.progress)(&step);
        let log = self.folder.join(LOG);
        let output = File::create(&log).map_err(at(&log))?;
        // A group of its own, which can be ended together.
        command.current_dir(self.folder).process_group(0).stdin(Stdio::null());
        command.stdout(output.try_clone().map_err(at(&log))?).stderr(output);
        let mut child = command.spawn().map_err(at(Path::new(command.get_program())))?;
        let status = loop {
            match child.try_wait().map_err(at(Path::new(command.get_program())))? {
                Some(status) => break status,
                None if self.stop.load(Ordering::Relaxed) => {
                    // An error means that it has just ended.
                    let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
                    let _ = child.wait();
                    return Err(BuildError::Stopped);
                }
                None => thread::sleep(POLL_INTERVAL),
            }
        };
        match status.success() {
            true => Ok(()),
            false => Err(BuildError::Step { step, output: last_lines(&log) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use trunkline_testkit::skips::skip;

    use super::*;

    /// Makes the source of a small Linux, whose kernel is a text with its options and what is changed.
    fn source(folder: &Path, makefile: &str) -> PathBuf {
        let tree = folder.join("tree/linux");
        fs::create_dir_all(tree.join("arch/um/os-Linux")).expect("a folder");
        for (file, old, _) in CHANGES {
            fs::write(tree.join(file), format!("before\n{old}after\n")).expect("a file");
        }
        fs::write(tree.join("Makefile"), makefile).expect("a file");
        let source = folder.join("source.tar");
        let tar = Command::new("tar")
            .arg("-C")
            .arg(folder.join("tree"))
            .arg("-cf")
            .arg(&source)
            .arg("linux")
            .status();
        assert!(tar.expect("tar starts").success());
        source
    }

    const MAKEFILE: &str = "defconfig:\n\techo CONFIG_FIRST=y >.config\nolddefconfig:\n\ttest $(ARCH) = um\n\
                            linux:\n\tcat .config arch/um/os-Linux/util.c arch/um/Kconfig >linux\n";

    /// The folder of kernels, the result of a build from such a makefile, and the names in the folder.
    fn built(makefile: &str, stop: bool) -> Option<(Result<String, BuildError>, Vec<String>)> {
        if Command::new("make").arg("--version").output().is_err() {
            skip("`make` is missing");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let source = source(folder.path(), makefile);
        let kernels = folder.path().join("kernels");
        let built = build_from(&source, &kernels, "mine", &|_| {}, &AtomicBool::new(stop));
        let names = fs::read_dir(&kernels).expect("the folder").flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        Some((built.map(|path| fs::read_to_string(path).expect("a text")), names))
    }

    #[test]
    fn the_options_random_numbers_and_jiffies_are_ours_and_only_the_kernel_is_kept() {
        let Some((kernel, names)) = built(MAKEFILE, false) else { return };
        let kernel = kernel.expect("it can be built");
        assert!(kernel.starts_with("CONFIG_FIRST=y\n"), "{kernel}");
        assert!(kernel.contains("CONFIG_UML_TIME_TRAVEL_SUPPORT=y\n"), "{kernel}");
        assert!(kernel.contains("UML_RANDOM_SEED"), "{kernel}");
        assert!(kernel.contains("default 250\nafter\n") && !kernel.contains("default 100"), "{kernel}");
        assert_eq!(names, ["mine"]);
    }

    #[test]
    fn a_build_that_fails_or_is_stopped_says_why_and_leaves_nothing() {
        let Some((failed, names)) = built(&MAKEFILE.replace("cat ", "nothing-like-cat "), false) else {
            return;
        };
        let text = failed.expect_err("there is no such command").to_string();
        assert!(text.contains("linux` failed") && text.contains("nothing-like-cat"), "{text}");
        assert!(text.contains(PACKAGES), "{text}");
        assert_eq!(names, [""; 0]);
        let Some((stopped, names)) = built(&MAKEFILE.replace("echo", "sleep 60; echo"), true) else { return };
        assert!(matches!(stopped, Err(BuildError::Stopped)), "{stopped:?}");
        assert_eq!(names, [""; 0]);
    }

    #[test]
    fn the_folder_of_a_build_that_was_killed_is_removed_by_the_next() {
        let folder = tempfile::tempdir().expect("a folder");
        let killed = folder.path().join(".build-killed/of it");
        fs::create_dir_all(&killed).expect("a folder");
        let (lock, first) = place(folder.path()).expect("a place");
        assert!(!killed.exists(), "nobody locks it");
        let (_lock, second) = place(folder.path()).expect("another place");
        assert!(first.path().exists() && second.path().exists(), "both builds go on");
        drop(lock);
        let _third = place(folder.path()).expect("a third");
        assert!(!first.path().exists() && second.path().exists());
    }

    #[test]
    fn a_source_that_is_missing_is_named_with_the_packages() {
        let missing = missing(Path::new("/nowhere/linux.tar.xz"));
        assert_eq!(missing[0], "`/nowhere/linux.tar.xz`");
        let text = BuildError::Missing(missing).to_string();
        assert!(text.contains(&format!("install them with `sudo apt-get install {PACKAGES}`")), "{text}");
    }
}
