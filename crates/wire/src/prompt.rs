//! The prompt of a shell on a host, which names the host.

use std::env;
use std::process::Command;

use nix::unistd::geteuid;

use crate::ground::Namespace;

/// Lets a shell that `command` starts on `host`, itself or later, say in its prompt where it is: `[b] ` stands before the
/// prompt that the user has, unless that shows the host's name already (`\h` in bash).
///
/// bash reads its prompt from files of the user's, so that it is changed when it is about to be printed; other shells take it
/// from the environment.
pub fn name_host(command: &mut Command, host: &Namespace) {
    let name = host.name();
    // The machine's own name would not say which host of the wire it is.
    let is_shown = if host.is_outside() { "" } else { "*\\\\[hH]*|" };
    let change = format!(r#"case $PS1 in {is_shown}"[{name}] "*) ;; *) PS1="[{name}] $PS1" ;; esac"#);
    let change = match env::var("PROMPT_COMMAND") {
        Ok(own) if !own.trim().is_empty() => format!("{change}; {own}"),
        _ => change,
    };
    command.env("PROMPT_COMMAND", change);
    if env::var_os("PS1").is_none() {
        let sign = if geteuid().is_root() { '#' } else { '$' };
        command.env("PS1", format!("[{name}] {sign} "));
    }
}
