//! The settings of the runs: their files, machines and times, and how to run them again.

use maud::{Markup, html};

use crate::again::again;
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
