//! The documentation as pages: the Markdown of `docs` as HTML, whose links stay within it.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// Every chapter and picture, with the path at which it is served.
pub(crate) fn pages(docs: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let summary = fs::read_to_string(docs.join("SUMMARY.md"))?;
    let (_, contents) = rendered(summary.trim_start_matches("# Summary"), Path::new(""));
    let mut pages = Vec::new();
    for path in super::list(docs)? {
        let name = super::name_of(&path, docs);
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("png" | "svg") => pages.push((format!("docs/{name}"), fs::read(path)?)),
            Some("md") if name != "SUMMARY.md" => {
                let address = format!("docs/{}html", name.trim_end_matches("md"));
                let folder = Path::new(&name).parent().unwrap_or(Path::new(""));
                let (title, body) = rendered(&included(&fs::read_to_string(&path)?, docs)?, folder);
                let link = format!("href=\"/{address}\"");
                let contents = contents.replace(&link, &format!("aria-current=\"page\" {link}"));
                pages.push((address, page(&title, &contents, &body).into_bytes()));
            }
            _ => {}
        }
    }
    Ok(pages)
}

/// A text with the file that it includes.
fn included(text: &str, docs: &Path) -> io::Result<String> {
    let Some((before, rest)) = text.split_once("{{#include ") else { return Ok(text.to_owned()) };
    let (file, after) = rest.split_once("}}").unwrap_or((rest, ""));
    println!("cargo::rerun-if-changed={}", docs.join(file).display());
    Ok(format!("{before}{}{after}", fs::read_to_string(docs.join(file))?.trim_end()))
}

fn page(title: &str, contents: &str, body: &str) -> String {
    let of_trunkline = if title == "Trunkline" { "" } else { " · Trunkline" };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title}{of_trunkline}</title><link rel=\"icon\" href=\"/icon.svg\"><link \
         rel=\"stylesheet\" href=\"/docs.css\"></head>\n<body>\n<nav aria-label=\"Chapters\">\n<p><a href=\"/\">← To the page</a></p>\n\
         {contents}</nav>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

/// The title of a text in `folder`, and the text in HTML.
fn rendered(text: &str, folder: &Path) -> (String, String) {
    let mut events: Vec<Event<'_>> =
        Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_HEADING_ATTRIBUTES).collect();
    let mut title = String::new();
    let mut seen = HashMap::new();
    let mut is_plain = false;
    for at in 0..events.len() {
        let heading =
            matches!(events[at], Event::Start(Tag::Heading { .. })).then(|| heading(&events[at + 1..]));
        match &mut events[at] {
            Event::Start(Tag::Heading { id, .. }) => {
                let text = heading.unwrap_or_default();
                let named = anchor(&text, &mut seen);
                id.get_or_insert(named.into());
                if title.is_empty() {
                    title = text;
                }
            }
            Event::Start(Tag::Image { dest_url, .. }) => {
                *dest_url = address(dest_url, folder).unwrap_or_default().into()
            }
            // Links out of the documentation become plain text.
            event @ Event::Start(Tag::Link { .. }) => {
                let Event::Start(Tag::Link { dest_url, .. }) = event else { continue };
                match address(dest_url, folder) {
                    Some(address) => *dest_url = address.into(),
                    None => {
                        is_plain = true;
                        *event = Event::Text(CowStr::Borrowed(""));
                    }
                }
            }
            event @ Event::End(TagEnd::Link) if is_plain => {
                is_plain = false;
                *event = Event::Text(CowStr::Borrowed(""));
            }
            _ => {}
        }
    }
    let mut out = String::new();
    html::push_html(&mut out, events.into_iter());
    // An empty header cell heads nothing.
    (title, out.replace("<th></th>", "<td></td>"))
}

/// The words of the heading that begins here.
fn heading(events: &[Event<'_>]) -> String {
    let words = events.iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    let words = words.filter_map(|event| match event {
        Event::Text(text) | Event::Code(text) => Some(&**text),
        _ => None,
    });
    words.collect()
}

/// The anchor of a heading, as other Markdown tools derive it.
fn anchor(heading: &str, seen: &mut HashMap<String, u32>) -> String {
    let kept = |c: char| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
        _ => None,
    };
    let name: String = heading.to_lowercase().chars().filter_map(kept).collect();
    let count = seen.entry(name.clone()).or_insert(0);
    *count += 1;
    if *count == 1 { name } else { format!("{name}-{}", *count - 1) }
}

/// The address of a link in a text in `folder`; `None` if its target is not part of the documentation.
fn address(link: &str, folder: &Path) -> Option<String> {
    if link.contains("://") || link.starts_with('#') {
        return Some(link.to_owned());
    }
    let (file, place) = link.split_at(link.find('#').unwrap_or(link.len()));
    let mut path = PathBuf::new();
    for part in folder.join(file).components() {
        match part {
            Component::ParentDir => path.pop().then_some(())?,
            Component::Normal(part) => path.push(part),
            _ => {}
        }
    }
    let ending = match path.extension()?.to_str()? {
        "md" => "html",
        "png" => "png",
        "svg" => "svg",
        _ => return None,
    };
    Some(format!("/docs/{}{place}", path.with_extension(ending).to_string_lossy().replace('\\', "/")))
}
