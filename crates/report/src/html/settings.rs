//! What was run, on what, and how to run it again.

use maud::{Markup, html};
use trunkline_store::RunInfo;

use crate::view::View;

pub(super) fn section(view: &View) -> Markup {
    html! {
        section aria-labelledby="settings" {
            h2 id="settings" { "Settings" }
            @for side in &view.sides {
                @let info = side.info();
                dl.settings {
                    div { dt { "Run" } dd { (info.id) " on " (info.backend.name()) } }
                    div { dt { "Started" } dd { (info.started.strftime("%Y-%m-%d %H:%M:%S UTC")) } }
                    @if let Some(finished) = info.finished {
                        div { dt { "Finished" } dd { (finished.strftime("%Y-%m-%d %H:%M:%S UTC")) } }
                    }
                    div { dt { "Seed" } dd { (info.seed) } }
                    div { dt { "Version" } dd { "Trunkline " (info.version) } }
                    div { dt { "Machine" } dd { (info.machine) } }
                    @if !info.settings.is_empty() {
                        div { dt { "Overridden keys" } dd { @for setting in &info.settings { code { (setting) } br; } } }
                    }
                    div { dt { "Run it again" } dd { code { (again(info)) } } }
                }
            }
            details.file {
                summary { "The experiment file" }
                pre tabindex="0" { code { (view.run().text) } }
            }
        }
    }
}

/// The command that measures the same again. What came from standard input is in no file but the run's own.
fn again(info: &RunInfo) -> String {
    let file = if info.file.ends_with("-") { "-".to_owned() } else { quoted(&info.file.to_string_lossy()) };
    let mut command = format!("trunkline run {file}");
    for setting in &info.settings {
        command += &format!(" {}", crate::set_again(setting));
    }
    command + " --on " + info.backend.name()
}

/// A text as a shell takes it.
pub(crate) fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '=');
    if !path.is_empty() && path.chars().all(plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}
