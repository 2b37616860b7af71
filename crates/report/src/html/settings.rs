//! What was run, on what, and how to run it again.

use maud::{Markup, html};

use crate::view::{View, backend_name};

pub(super) fn section(view: &View) -> Markup {
    html! {
        section aria-labelledby="settings" {
            h2 id="settings" { "Settings" }
            @for side in &view.sides {
                @let info = side.info();
                dl.settings {
                    div { dt { "Run" } dd { (info.id) " on " (backend_name(info.backend)) } }
                    div { dt { "Started" } dd { (info.started.strftime("%Y-%m-%d %H:%M:%S UTC")) } }
                    @if let Some(finished) = info.finished {
                        div { dt { "Finished" } dd { (finished.strftime("%Y-%m-%d %H:%M:%S UTC")) } }
                    }
                    div { dt { "Seed" } dd { (info.seed) } }
                    div { dt { "Version" } dd { "Trunkline " (info.version) } }
                    div { dt { "Machine" } dd { (info.machine) } }
                    div { dt { "Run it again" } dd { code { "trunkline run " (quoted(&info.file.to_string_lossy())) " --on " (backend_name(info.backend)) } } }
                }
            }
            details.file {
                summary { "The experiment file" }
                pre tabindex="0" { code { (view.run().text) } }
            }
        }
    }
}

/// A path as a shell takes it.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_');
    if !path.is_empty() && path.chars().all(plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}
