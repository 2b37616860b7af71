//! Opens a page in the user's browser without showing its address to other users of this machine.

use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::args::serve::Browser;

/// A file that leads a browser to an address. The command line of the browser, which every user of the machine can
/// read, contains only the file's path.
#[derive(Debug)]
pub(super) struct Page(PathBuf);

/// A process that waits for the path of a page to open. It starts before the server enters a user namespace, in which
/// browsers do not work.
#[derive(Debug)]
pub(super) struct Opener(Child);

impl Opener {
    /// Starts the process if a browser is to be opened and there is a program for it.
    pub(super) fn start(when: Browser) -> Option<Opener> {
        let chosen = std::env::var("BROWSER").ok().filter(|name| !name.is_empty());
        let chosen = chosen.and_then(|names| names.split(':').next().map(str::to_owned));
        let wanted = match when {
            Browser::Never => false,
            Browser::Always => true,
            Browser::Auto => is_interactive(),
        };
        let usual = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        let program = wanted.then(|| chosen.unwrap_or_else(|| usual.to_owned()))?;
        let mut command = Command::new("sh");
        command.args(["-c", "read -r page && exec \"$0\" \"$page\"", &program]);
        // A group of its own: Ctrl-C ends the server and not the browser.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok().map(Opener)
    }

    /// Opens a page.
    pub(super) fn open(mut self, page: &Page) -> io::Result<()> {
        let mut input = self.0.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(input, "{}", page.0.display())?;
        drop(input);
        // Its exit code says little: most desktops report success whatever happens.
        std::thread::spawn(move || self.0.wait());
        Ok(())
    }
}

impl Page {
    /// Writes the file, which only its owner can read.
    pub(super) fn write(path: &Path, address: &str) -> io::Result<Page> {
        let mut folder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
        folder.recursive(true).create(path.parent().unwrap_or(Path::new(".")))?;
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        // An address of ours: nothing in it needs escaping.
        let text = format!(
            "<!doctype html><meta charset=\"utf-8\"><title>Trunkline</title>\n\
             <meta http-equiv=\"refresh\" content=\"0; url={address}\">\n\
             <p><a href=\"{address}\">Open Trunkline</a></p>\n"
        );
        options.open(path)?.write_all(text.as_bytes())?;
        Ok(Page(path.to_path_buf()))
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // The next server replaces what is left.
        let _ = fs::remove_file(&self.0);
    }
}

/// True if a user at a desktop started this command in a terminal.
#[expect(clippy::disallowed_methods, reason = "nothing is printed")]
fn is_interactive() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let desktop = cfg!(target_os = "macos") || set("DISPLAY") || set("WAYLAND_DISPLAY");
    io::stderr().is_terminal() && desktop && !set("SSH_CONNECTION")
}
